"""How long the example fleet takes to start, and what its processes need of memory.

    .venv/bin/python bench/start.py [--starts 5]

`treeplane up examples/fleet-repo` with two stand-ins for clusters, as the README has it: from the command until it is
ready and has said what to type next, once for a repository that it has never seen and then again. Memory is looked at
after ten seconds without a request.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from measure import size, table, usage, verdict
from support.plane import Plane

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "fleet-repo"
SECONDS, MEMORY = 1.5, 200 << 20
QUIET = 10.0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--starts", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="treeplane-bench-") as name:
        shutil.copytree(EXAMPLE, Path(name) / "fleet")
        plane = Plane(Path(name) / "fleet", Path(name) / "data")
        first, taken = start(plane)
        again = sorted(start(plane)[0] for _ in range(options.starts))
    rows = [["first start", f"{first:.2f} s"], ["another, median", f"{again[len(again) // 2]:.2f} s"]]
    rows += [["at most", f"{again[-1]:.2f} s"], ["memory of all processes", size(taken)]]
    table("the example fleet", rows)
    good = first <= SECONDS and again[len(again) // 2] <= SECONDS and taken <= MEMORY
    print(f"\nexpected {SECONDS} s, {size(MEMORY)}: {verdict(good)}")
    return 0 if good else 1


def start(plane: Plane) -> tuple[float, int]:
    """Seconds until it is ready, and bytes of memory, shared pages in proportion."""
    began = time.monotonic()
    with plane:
        seconds = time.monotonic() - began
        time.sleep(QUIET)
        found = [usage(pid) for pid in plane.pids()]
        return seconds, sum(each.own + each.mapped for each in found if each is not None)


if __name__ == "__main__":
    sys.exit(main())
