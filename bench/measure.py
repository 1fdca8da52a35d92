"""What the benchmarks measure with: percentiles, CPU and memory of processes, bytes on disk, a printed table."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that `share` (0…1) of the values do not exceed."""
    return sorted(values)[max(0, math.ceil(len(values) * share - 1e-9) - 1)]


@dataclass(frozen=True, slots=True)
class Usage:
    """One process at one moment. Memory in bytes and resident: `own`, and its share of files that are mapped (the
    store's among them): a page that three processes map counts a third in each, so that sums are true. `anonymous`: as
    `own`, with all that it shares with a fork of itself, which comes and goes."""

    name: str
    cpu_seconds: float
    own: int
    mapped: int
    anonymous: int


def usage(pid: int) -> Usage | None:
    """None if the process has ended."""
    folder = Path(f"/proc/{pid}")
    try:
        stat = (folder / "stat").read_text().rpartition(")")[2].split()
        rollup = (folder / "smaps_rollup").read_text().splitlines()[1:]
        words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return None
    memory = {key: int(value.split()[0]) * 1024 for key, value in (line.split(":") for line in rollup)}
    cpu = (int(stat[11]) + int(stat[12])) / _TICKS
    mapped = memory["Pss_File"] + memory["Pss_Shmem"]
    return Usage(_short_name(words), cpu, memory["Pss_Anon"], mapped, memory["Anonymous"])


def _short_name(words: Sequence[str]) -> str:
    """`python -m apiserver …` → apiserver; `…/bin/treeplane up …` → treeplane up."""
    words = [word for word in words if word]
    if not words:
        return "?"
    if "-m" in words[:-1]:
        return words[words.index("-m") + 1]
    if Path(words[0]).name.startswith("python") and len(words) > 1:
        words = words[1:]
    return " ".join([Path(words[0]).name, *[word for word in words[1:2] if not word.startswith(("-", "/"))]])


def bytes_on_disk(folder: Path) -> int:
    """Blocks really taken: the store's file is sparse."""
    return sum(file.lstat().st_blocks * 512 for file in folder.rglob("*") if file.is_file())


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"


def size(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024 or unit == "MiB":
            break
        count /= 1024
    return f"{count:.0f} {unit}" if count >= 100 else f"{count:.1f} {unit}"


def table(title: str, rows: Sequence[Sequence[str]]) -> None:
    """Print rows under a title, columns aligned."""
    print(f"\n{title}")
    widths = [max(len(row[column]) for row in rows if column < len(row)) for column in range(max(map(len, rows)))]
    for row in rows:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip())


def verdict(good: bool) -> str:
    return "as expected" if good else "NOT AS EXPECTED"
