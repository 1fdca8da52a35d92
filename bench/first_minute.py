"""The first minute: `make up` on a fresh clone until it serves, what that installs, and how large the image is.

    .venv/bin/python bench/first_minute.py

The clone is of the commit that is checked out; packages come from where pip has them, which is asked once before, so
that its cache is warm. The image is left out, by name, where nothing builds one (tests/realclusters/imagebuilder).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from measure import table, verdict
from realclusters import imagebuilder
from realclusters.binaries import Unavailable
from support.plane import environment

from release import build

TOP = Path(__file__).resolve().parents[1]
SECONDS, INSTALLED, PULLED = 30.0, 280_000_000, 130_000_000
ROUNDS = 2
"""The second one counts: the first fills pip's cache."""
SERVES = "in a second terminal:"


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="treeplane-bench-") as name:
        rounds = [made_up(Path(name) / str(number)) for number in range(ROUNDS)]
        seconds, installed = rounds[-1]
        found = [
            ["make up on a fresh clone", f"{seconds:.1f} s", f"<= {SECONDS:.0f} s", verdict(seconds <= SECONDS)],
            ["installed", megabytes(installed), f"<= {megabytes(INSTALLED)}", verdict(installed <= INSTALLED)],
        ]
        try:
            pulled = image(Path(name) / "dist")
        except Unavailable as error:
            found.append(["the image, compressed", "not built", str(error), ""])
        else:
            found.append(
                ["the image, compressed", megabytes(pulled), f"<= {megabytes(PULLED)}", verdict(pulled <= PULLED)]
            )
    table("the first minute", [["", "", "expected", ""], *found])
    return 0 if not any("NOT" in row[-1] for row in found) else 1


def made_up(folder: Path) -> tuple[float, int]:
    """Seconds until a clone serves, and bytes of its .venv."""
    subprocess.run(["git", "clone", "--quiet", str(TOP), str(folder)], check=True)
    log, began = folder.with_suffix(".log"), time.monotonic()
    with log.open("wb") as output:
        command = subprocess.Popen(
            ["make", "up"],
            cwd=folder,
            env=environment(TREEPLANE_LISTEN="127.0.0.1:0"),
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        while SERVES not in log.read_text(errors="replace"):
            if command.poll() is not None:
                sys.exit(f"`make up` ended:\n{log.read_text(errors='replace')}")
            time.sleep(0.05)
        seconds = time.monotonic() - began
    finally:
        os.killpg(command.pid, signal.SIGINT)
        command.wait()
    return seconds, sum(each.stat().st_size for each in (folder / ".venv").rglob("*") if each.is_file())


def image(folder: Path) -> int:
    """Bytes that are pulled. Raises Unavailable."""
    builder = imagebuilder.find()
    [wheel] = (each for each in build.release(folder) if each.suffix == ".whl")
    return builder.build(TOP, wheel).compressed()


def megabytes(number: int) -> str:
    return f"{number / 1e6:.0f} MB"


if __name__ == "__main__":
    sys.exit(main())
