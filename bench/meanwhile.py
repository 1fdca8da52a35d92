"""What others wait for while N workspaces are loaded in one commit: a small push, a write that is a commit, a write.

    .venv/bin/python bench/meanwhile.py 100000

Before the large commit is pushed and while it is loaded, one file is pushed again and again until it is seen, and
ConfigMaps are created in two workspaces: in one writes are commits, in the other they go to the store alone. Each waits
for its answer, then a fifth of a second.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from commit_writes import FLEET
from load import ROOT, add, counted
from measure import milliseconds, percentile, table, verdict
from support.plane import Clone, Connection, Plane

BEFORE = 20.0
"""Seconds without a load."""
PAUSE = 0.2
LONGEST = 120.0
PUSH, COMMIT, STORE = "a small push until it is seen", "a write that is a commit", "a write to the store"
EXPECTED = ((PUSH, 0.5, 0.5), (PUSH, 0.99, 2), (COMMIT, 0.5, 0.5), (COMMIT, 0.99, 2), (STORE, 0.99, 0.1))
"""Who, which share of them, and seconds at most."""
MAPS = "/clusters/root:%s/api/v1/namespaces/default/configmaps"
SMALL = "workspaces/root/small/changed.yaml"
CHANGED = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: changed}\ndata: {number: '%d'}\n"


class Waiting:
    """One who works on, in a thread of its own: `latencies` in seconds, with the time at which each began."""

    def __init__(self, work: Callable[[int], float]) -> None:
        """`work` says how long it waited."""
        self.latencies: list[tuple[float, float]] = []
        self._work = work
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._end.set()
        self._thread.join()

    def between(self, first: float, last: float) -> list[float]:
        return [latency for began, latency in self.latencies if first <= began < last]

    def _run(self) -> None:
        for number in count():
            if self._end.is_set():
                return
            began = time.monotonic()
            self.latencies.append((began, self._work(number)))
            self._end.wait(PAUSE)


def pushing(clone: Clone, connection: Connection) -> Callable[[int], float]:
    """Without a work tree, which a large fleet would fill."""

    def push(number: int) -> float:
        while True:
            clone.git("fetch", "--quiet", "origin")
            change(clone, CHANGED % number)
            began = time.monotonic()
            if "rejected]" not in clone.git("push", "--porcelain", "origin", "small:main", check=False):
                break
        while time.monotonic() < began + LONGEST:
            answer = connection.request("GET", f"{MAPS % 'small'}/changed")
            if answer.status == 200 and answer.body["data"]["number"] == str(number):
                break
            time.sleep(0.01)
        return time.monotonic() - began

    return push


def change(clone: Clone, text: str) -> None:
    """A commit of one file on top of what was fetched, as the branch `small`."""
    head = clone.git("rev-parse", "origin/main").strip()
    said = "committer bench <bench@example.com> now\ndata 1\nx"
    commands = f"commit refs/heads/small\n{said}\nfrom {head}\nM 100644 inline {SMALL}\ndata {len(text)}\n{text}\n"
    git = ["git", "-C", str(clone.folder), "fast-import", "--quiet", "--force", "--date-format=now"]
    subprocess.run(git, input=commands.encode(), check=True)


def writing(connection: Connection, where: str) -> Callable[[int], float]:
    def write(_: int) -> float:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"n{time.monotonic_ns()}"}}
        began = time.monotonic()
        while connection.request("POST", MAPS % where, body).status != 201:
            time.sleep(0.01)
        return time.monotonic() - began

    return write


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("workspaces", type=int, nargs="?", default=10_000)
    parser.add_argument("--roles", default="auto", help="as of `treeplane up`")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="treeplane-bench-") as name:
        run(options.workspaces, Path(name), options.roles)


def run(workspaces: int, folder: Path, roles: str) -> None:
    for path, text in {**FLEET, "workspaces/root/about.yaml": ROOT, SMALL: CHANGED % -1}.items():
        (folder / "seed" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "seed" / path).write_text(text)
    (folder / "seed" / SMALL).with_name("workspace.yaml").write_text("")
    with Plane(folder / "seed", folder / "data", "--roles", roles) as plane:
        clone = plane.clone(folder / "clone")
        there = counted(plane.connection())
        before = work(plane, clone)
        first = time.monotonic()
        time.sleep(BEFORE)
        stop(before)
        clone.git("fetch", "--quiet", "origin")
        clone.git("reset", "--quiet", "--hard", "origin/main")
        add(clone, workspaces)
        loading = time.monotonic()
        clone.push("origin", "HEAD:main")
        during = work(plane, clone)
        connection = plane.connection()
        while counted(connection) < there + workspaces:
            time.sleep(0.5)
        ended = time.monotonic()
        stop(during)
        report(workspaces, before, (first, loading), during, (loading, ended))


def work(plane: Plane, clone: Clone) -> dict[str, Waiting]:
    """All three, begun."""
    found = {
        PUSH: Waiting(pushing(clone, plane.connection(None))),
        COMMIT: Waiting(writing(plane.connection(None), "commit")),
        STORE: Waiting(writing(plane.connection(None), "store")),
    }
    for each in found.values():
        each.start()
    return found


def stop(found: dict[str, Waiting]) -> None:
    for each in found.values():
        each.stop()


Span = tuple[float, float]


def report(workspaces: int, before: dict[str, Waiting], quiet: Span, during: dict[str, Waiting], load: Span) -> None:
    rows = [["", "", "how many", "p50", "p99", "longest"]]
    for name in before:
        for when, who, span in (("before", before, quiet), ("while it loads", during, load)):
            found = who[name].between(*span) or [0.0]
            figures = [milliseconds(percentile(found, share)) for share in (0.5, 0.99, 1)]
            rows.append([name, when, str(len(found)), *figures])
    table(f"{workspaces:,} workspaces in one commit, loaded in {load[1] - load[0]:.0f} s", rows)
    table("expected while it loads", [bound(during, load, *each) for each in EXPECTED])


def bound(during: dict[str, Waiting], load: Span, name: str, share: float, most: float) -> list[str]:
    found = percentile(during[name].between(*load) or [LONGEST], share)
    words = [name, f"p{100 * share:.0f}", milliseconds(found), f"≤ {milliseconds(most)}"]
    return [*words, verdict(found <= most)]


if __name__ == "__main__":
    main()
