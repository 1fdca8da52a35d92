"""What a push costs who makes it: from the start of `git push` to its end, answer included.

    .venv/bin/python bench/pushes.py [--pushes 100]

The example fleet, served by `treeplane up`, pushed to over https with git; each push changes one ConfigMap. Once as it
comes, where a push is taken and told what became of it; once with `spec.push: Refuse`, where it is judged before it is
taken; and such pushes as are refused.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from measure import milliseconds, percentile, table
from support.plane import Clone, Plane, PlaneError

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "fleet-repo"
FILE = "workspaces/root/shop/web/bench.yaml"
GOOD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bench}\ndata: {number: '%d'}\n"
BAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bench}\ndata: {number: [%d]}\n"
WARM = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pushes", type=int, default=100)
    options = parser.parse_args()
    rows = [["", "median", "p99", "expected of p99"]]
    with tempfile.TemporaryDirectory() as directory:
        fleet = shutil.copytree(EXAMPLE, Path(directory) / "fleet")
        with Plane(fleet, Path(directory) / "server" / "data") as server:
            clone = server.clone(Path(directory) / "clone")
            rows.append(told("taken and told", measured(clone, options.pushes, GOOD)))
            settings = clone.folder / "treeplane.yaml"
            clone.write("treeplane.yaml", refusing(settings.read_text()))
            clone.commit("refuse what would hold a workspace")
            clone.push()
            rows.append(told("judged, taken and told", measured(clone, options.pushes, GOOD)))
            rows.append(told("judged and refused", measured(clone, options.pushes, BAD, refused)))
    table("git push, start to end", rows)


def refusing(text: str) -> str:
    """The example's treeplane.yaml with the setting."""
    return text.replace("spec:\n", "spec:\n  push: Refuse\n", 1)


def measured(clone: Clone, pushes: int, text: str, push: Callable[[Clone], object] = Clone.push) -> list[float]:
    """Seconds of each, but for the first few."""
    times = []
    for number in range(pushes + WARM):
        clone.write(FILE, text % number)
        clone.commit(f"push {number}")
        began = time.perf_counter()
        push(clone)
        times.append(time.perf_counter() - began)
        if push is refused:
            clone.git("reset", "--quiet", "--hard", "HEAD~1")
    return times[WARM:]


def refused(clone: Clone) -> None:
    try:
        clone.push()
    except PlaneError:
        return
    raise SystemExit("a push was taken that holds a workspace")


def told(name: str, times: list[float]) -> list[str]:
    return [name, milliseconds(percentile(times, 0.5)), milliseconds(percentile(times, 0.99)), milliseconds(0.3)]


if __name__ == "__main__":
    main()
