"""`treeplane status` of N workspaces: nothing wrong, a few held, all held; of the server and of its data directory.

    .venv/bin/python bench/status_command.py 10000

The fleet of `load.py` is pushed in one commit. What is measured is the whole command, the start of Python included.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from fleet import commit
from load import FLEET, LARGE_PUSH, ROOT, add, counted, directory, wait_ready
from measure import percentile, table
from support.plane import COMMAND, Clone, Plane, PlaneError, environment

TIMES, FEW, EXPECTED = 7, 5, 1.0
LONGEST = 1200.0
BAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {number: [7]}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("workspaces", type=int, nargs="?", default=10_000)
    count: int = parser.parse_args().workspaces
    with tempfile.TemporaryDirectory(prefix="treeplane-bench-") as name:
        run(count, Path(name))


def run(count: int, folder: Path) -> None:
    seed = folder / "seed"
    (seed / "workspaces" / "root").mkdir(parents=True)
    (seed / "treeplane.yaml").write_text(FLEET)
    (seed / "workspaces" / "root" / "about.yaml").write_text(ROOT)
    with Plane(seed, folder / "data", *LARGE_PUSH) as plane:
        clone = plane.clone(folder / "clone")
        shipped = counted(plane.connection())
        add(clone, count)
        clone.push("origin", "HEAD")
        wait_ready(plane, count + shipped, time.monotonic(), LONGEST)
        rows = [measured(plane, "nothing wrong", 0)]
        hold(plane, clone, range(FEW), FEW)
        rows.append(measured(plane, f"{FEW} held", FEW))
        hold(plane, clone, range(count), count)
        rows.append(measured(plane, f"{count:,} held", count))
    head = ["", "of the server", "of its data directory", "expected"]
    table(f"treeplane status of {count:,} workspaces, {TIMES} times each, seconds", [head, *rows])


def hold(plane: Plane, clone: Clone, numbers: range, expected: int) -> None:
    commit(clone, [f"M 100644 inline {directory(n)}/settings.yaml\ndata {len(BAD)}\n{BAD}" for n in numbers])
    clone.push("origin", "small:main")
    until = time.monotonic() + LONGEST
    while held(asked(plane)[1]) != expected:
        if time.monotonic() > until:
            raise PlaneError(f"{held(asked(plane)[1])} of {expected} are held")
        time.sleep(1)


def asked(plane: Plane, *words: str) -> tuple[float, str]:
    """Seconds, and what was printed."""
    began = time.monotonic()
    variables = environment(KUBECONFIG=str(plane.kubeconfig))
    done = subprocess.run([COMMAND, "status", "-o", "json", *words], env=variables, capture_output=True, check=False)
    if done.returncode not in (0, 1):
        raise PlaneError(done.stderr.decode())
    return time.monotonic() - began, done.stdout.decode()


def held(printed: str) -> int:
    found = json.loads(printed)
    return sum(each["kind"] == "held" for each in found["wrong"]) + int(found["more"].get("held", 0))


def measured(plane: Plane, what: str, expected: int) -> list[str]:
    cells = [what]
    for words in ((), ("--data-dir", str(plane.data))):
        taken = list[float]()
        for _ in range(TIMES):
            seconds, printed = asked(plane, *words)
            assert held(printed) == expected, printed[:500]
            taken.append(seconds)
        cells.append(f"{percentile(taken, 0.5):.2f}, at most {max(taken):.2f}")
    return [*cells, f"{EXPECTED:.0f}"]


if __name__ == "__main__":
    main()
