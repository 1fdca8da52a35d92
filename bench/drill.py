"""What `treeplane drill` costs: seconds and memory of the whole command, and how these part into clone, load, render.

    .venv/bin/python bench/drill.py 10000

N workspaces of two files each, a hundredth of which take an export of one of them, served and recorded on the status
branch. Drilled is the repository by its path and by a URL of this machine.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from diff import cost, prepared
from measure import table
from support.loadedfleet import LoadedFleet


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("workspaces", type=int, nargs="?", default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        fleet = LoadedFleet(Path(directory) / "fleet")
        fleet.begin()
        prepared(fleet, options.workspaces)
        source = fleet.repo.path
        fleet.close()
        subprocess.run([shutil.which("git") or "git", "-C", str(source), "repack", "-a", "-d", "-q"], check=True)
        rows = [["", "seconds", "most memory", "exit", "clone", "load", "render"]]
        for _ in range(options.rounds):
            for name, where in (("a path", str(source)), ("a URL", f"file://{source}")):
                command = [sys.executable, "-m", "reconciler", "drill", where, "-o", "json"]
                told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
                times = told["recoveryTime"]
                parts = [f"{times[part]:.2f}" for part in ("clone", "load", "render")]
                rows.append([name, *cost(command), *parts])
        table(f"treeplane drill, {options.workspaces:,} workspaces", rows)


if __name__ == "__main__":
    main()
