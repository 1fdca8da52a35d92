"""What `treeplane log` and `treeplane blame` cost where a fleet is large and its history long: seconds and memory.

    .venv/bin/python bench/history.py 100000 --commits 1000

N workspaces of two files each in 256 directories, and commits that change one file each, every tenth of them in one and
the same workspace. Told is that workspace, an object of it, one that no commit touched since the first, and all of it;
and `git log` of the same directory and file, for comparison.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from diff import FILES, cost
from judging import written
from measure import table
from support.fleetrepo import TREEPLANE_YAML, FleetRepo

ROOT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: root}\n"
DAY = 1_790_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("workspaces", type=int, nargs="?", default=10_000)
    parser.add_argument("--commits", type=int, default=1_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        repo = FleetRepo(Path(directory) / "fleet.git")
        git = [shutil.which("git") or "git", "-C", str(repo.path)]
        feed = b"".join(stream(options.workspaces, options.commits))
        subprocess.run([*git, "fast-import", "--quiet", "--force"], input=feed, check=True)
        subprocess.run([*git, "repack", "-a", "-d", "-q"], check=True)
        program = [str(Path(sys.executable).with_name("treeplane"))]
        at = ["-C", str(repo.path)]
        busy, still = place(0), place(1)
        asked = {
            "log of the workspace": [*program, "log", *at, busy, "--max", "0"],
            "git log of its directory": [*git, "log", "--first-parent", "--format=%H", "--", busy],
            "blame of its object": [*program, "blame", *at, "-w", busy, "cm/settings"],
            "blame of one that stays": [*program, "blame", *at, "-w", still, "cm/settings"],
            "git log of its file": [*git, "log", "--first-parent", "--format=%H", "--", f"{still}/settings.yaml"],
            "log of all, 100 commits": [*program, "log", *at],
            "log of all": [*program, "log", *at, "--max", "0"],
        }
        rows = [["", "seconds", "most memory", "exit"], *([name, *cost(words)] for name, words in asked.items())]
        table(f"treeplane log and blame, {options.workspaces:,} workspaces, {options.commits:,} commits", rows)


def place(number: int) -> str:
    name = f"ws-{number}"
    return f"workspaces/root/{hashlib.sha256(name.encode()).hexdigest()[:2]}/{name}"


def stream(count: int, commits: int) -> Iterator[bytes]:
    """For git fast-import."""
    first = [("treeplane.yaml", TREEPLANE_YAML), ("workspaces/root/root.yaml", ROOT), *written(count, FILES)]
    yield commit(0, first)
    for number in range(1, commits + 1):
        where = place(0 if number % 10 == 0 else 2 + number % (count - 2))
        yield commit(number, [(f"{where}/settings.yaml", FILES["settings.yaml"].replace("%d", f"x{number}"))])


def commit(number: int, files: list[tuple[str, str]]) -> bytes:
    parts = [f"commit refs/heads/main\ncommitter b <b@example.com> {DAY + number} +0000\ndata 1\nx\n".encode()]
    parts += [b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(text), text.encode()) for path, text in files]
    return b"".join(parts)


if __name__ == "__main__":
    main()
