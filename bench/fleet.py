"""A fleet of N workspaces after its load: what a push, a page, a deletion, a restart and a recovery take.

    .venv/bin/python bench/fleet.py 100000 [--empty]

The fleet of `load.py` is pushed in one commit. Then one file is changed and a workspace added, several times each,
until they are seen; the first page over all workspaces is read; 10,000 workspaces are deleted in one commit; the
server is stopped and started again; and another one is started from a clone of the repository, status branch and all.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import peer
from apiclient import Result
from load import FLEET, LARGE_PUSH, ROOT, WORKSPACE, WORKSPACES, Footprint, add, config, counted, directory, wait_ready
from measure import milliseconds, percentile, size, table, usage, verdict
from support.plane import Clone, Connection, Plane, PlaneError, environment

FREE = f'{WORKSPACE}metadata: {{annotations: {{treeplane.dev/protected: "false"}}}}\n'
"""Of root: all below it may be deleted."""
PAGE = "/clusters/*/api/v1/namespaces?limit=500"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
CHANGES, NEW, PAGES, COLD, RESTARTS, DELETED = 15, 7, 9, 50, 3, 10_000
LONGEST = 1800.0
EMPTY, FILED = 10_000, 5_000
"""Workspaces a second that are asked for, where a kube-apiserver creates `peer.PEER` ConfigMaps."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("workspaces", type=int, nargs="?", default=10_000)
    parser.add_argument("--empty", action="store_true", help="workspaces of one file, without a ConfigMap")
    parser.add_argument("--roles", default="auto", help="as of `treeplane up`")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="treeplane-bench-") as name:
        Run(options.workspaces, Path(name), options.roles, empty=options.empty).all()


class Run:
    """One fleet's life. Each step prints what it found."""

    def __init__(self, workspaces: int, folder: Path, roles: str, *, empty: bool) -> None:
        self._count, self._folder, self._empty = workspaces, folder, empty
        seed = folder / "seed"
        (seed / "workspaces" / "root").mkdir(parents=True)
        (seed / "treeplane.yaml").write_text(FLEET)
        (seed / "workspaces" / "root" / "workspace.yaml").write_text(FREE)
        (seed / "workspaces" / "root" / "about.yaml").write_text(ROOT)
        self._arguments = ("--roles", roles, *LARGE_PUSH)
        self._plane = Plane(seed, folder / "data", *self._arguments)
        self._hosted = self._plane.data / "repo" / "fleet.git"

    def all(self) -> None:
        plane = self._plane
        with plane:
            clone = plane.clone(self._folder / "clone")
            self._load(clone)
            self._pushes(clone)
            self._page()
            self._cold()
            self._deletion(clone)
            self._restarts(clone)
            self._wait_recorded(clone)
            copy = self._folder / "copy.git"
            subprocess.run(
                ["git", "clone", "--quiet", "--mirror", str(self._hosted), str(copy)],
                env=environment(), check=True,
            )  # fmt: skip
        self._recover(copy)

    # -- steps

    def _load(self, clone: Clone) -> None:
        before = Footprint.of(self._plane)
        shipped = counted(self._plane.connection())
        add(clone, self._count, empty=self._empty)
        peers = [peer.creates(self._folder / "before")]
        with most_memory(self._plane) as most:
            start = time.monotonic()
            clone.push("origin", "HEAD")
            ready = wait_ready(self._plane, self._count + shipped, start, LONGEST)
        self._tell_load("loaded in one commit", ready, before, max(most))
        peers.append(peer.creates(self._folder / "behind"))
        self._tell_expected(self._count / ready, peers)

    def _tell_load(self, title: str, seconds: float, before: Footprint, most: int) -> None:
        after = settled(self._plane)
        metrics = after.disk.get("metrics", 0) - before.disk.get("metrics", 0)
        rows = [
            ["workspaces a second", f"{self._count / seconds:,.0f}", f"{seconds:.1f} s"],
            ["on disk for each", size((after.stored - before.stored - metrics) / self._count), ""],
            ["metrics on disk, which follow the processes", size(metrics), ""],
            ["the store alone", size(after.disk.get("store", 0) / self._count), ""],
            ["memory but for the store's pages, at most", size(most), "all processes"],
            ["the same afterwards", size(own(after)), ""],
        ]
        rows += [[each.name, size(each.own), f"{each.cpu_seconds:.1f} s CPU"] for each in after.processes]
        table(f"{self._count:,} workspaces {title}", rows)

    def _tell_expected(self, rate: float, peers: list[Result]) -> None:
        asked = EMPTY if self._empty else FILED
        share, expected = peer.share(rate, peers), asked / peer.PEER
        table("a load in one commit, expected", [
            ["kube-apiserver, ConfigMaps a second", ", ".join(f"{each.rate:.0f}" for each in peers), "", ""],
            ["workspaces a second", f"{rate:,.0f}", f">= {asked:,}", verdict(rate >= asked)],
            ["for each of its ConfigMaps", f"{share:.1f}", f">= {expected:.1f}", verdict(share >= expected)],
        ])  # fmt: skip

    def _pushes(self, clone: Clone) -> None:
        found = [self._push(clone, number % self._count, f"c{number}") for number in range(CHANGES)]
        row("one changed file, push until it is seen", found)
        found = [self._push(clone, self._count + number, "new", appears=True) for number in range(NEW)]
        row("a new workspace, push until its object is seen", found)

    def _push(self, clone: Clone, number: int, text: str, *, appears: bool = False) -> float:
        """Seconds until the workspace's ConfigMap says `text`."""
        files = {f"{directory(number)}/settings.yaml": config(number).replace(f"'{number}'", f"'{text}'")}
        if appears:
            files[f"{directory(number)}/workspace.yaml"] = ""
        commit(clone, [f"M 100644 inline {path}\ndata {len(data)}\n{data}" for path, data in files.items()])
        connection = self._plane.connection(LONGEST)
        url = f"/clusters/root:ws-{number}/api/v1/namespaces/default/configmaps/settings"
        began = time.monotonic()
        clone.push("origin", "small:main")
        until(lambda: said(connection, url) == text)
        seconds = time.monotonic() - began
        connection.close()
        time.sleep(1)  # one at a time: what follows from it is done as well
        return seconds

    def _page(self) -> None:
        connection = self._plane.connection()
        found = []
        for _ in range(PAGES):
            began = time.monotonic()
            answer = connection.request("GET", PAGE)
            found.append(time.monotonic() - began)
            if answer.status != 200 or len(answer.body["items"]) < min(500, self._count):
                raise PlaneError(f"GET {PAGE}: {answer.status}")
        row("first page of 500 over all workspaces", found)

    def _cold(self) -> None:
        """Workspaces that nobody asked for before: a list, then all that kubectl discovers."""
        connection = self._plane.connection()
        lists, discoveries = [], []
        for number in range(COLD):
            world = f"/clusters/root:ws-{number * (self._count // COLD)}"
            lists.append(timed(connection, f"{world}/api/v1/configmaps", "application/json"))
            discoveries.append(timed(connection, f"{world}/apis", AGGREGATED))
        connection.close()
        row("first list in a workspace that nobody asked for", lists)
        row("its discovery", discoveries)

    def _deletion(self, clone: Clone) -> None:
        connection = self._plane.connection(LONGEST)
        gone = min(DELETED, self._count // 2)
        there = counted(connection)
        commit(clone, [f"D {directory(number)}" for number in range(gone)])
        began = time.monotonic()
        clone.push("origin", "small:main")
        until(lambda: counted(connection) == there - gone)
        row(f"{gone:,} workspaces deleted", [time.monotonic() - began])

    def _restarts(self, clone: Clone) -> None:
        reads, pushes = [], []
        last = self._count - 1
        for number in range(RESTARTS):
            time.sleep(6)  # what was deleted is recorded before
            revision = self._revision()
            self._plane.stop(seconds=60)
            began = time.monotonic()
            self._plane.start(LONGEST)
            reads.append(time.monotonic() - began)
            time.sleep(3)
            wrote = self._revision() - revision
            if wrote:
                print(f"a restart wrote {wrote} revisions", flush=True)
            pushes.append(self._push(clone, last, f"restart {number}"))
        row("restart, until it is ready", reads)
        row("the first push after it", pushes)

    def _revision(self) -> int:
        answer = self._plane.get(f"{WORKSPACES}?limit=1")
        return int(answer["metadata"]["resourceVersion"])

    def _wait_recorded(self, clone: Clone) -> None:
        """Until the status branch names the head."""
        head = clone.git("rev-parse", "small").strip()

        def recorded() -> bool:
            words = ["git", "--git-dir", str(self._hosted), "log", "-1", "treeplane/status"]
            found = subprocess.run(words, env=environment(), capture_output=True, text=True, check=False)
            return head in found.stdout

        until(recorded, pause=0.5)

    def _recover(self, copy: Path) -> None:
        plane = self._plane = Plane(copy, self._folder / "again" / "data", *self._arguments)
        began = time.monotonic()
        before = Footprint({}, [])
        plane.start(LONGEST)
        try:
            self._tell_load("recovered from a clone", time.monotonic() - began, before, own(Footprint.of(plane)))
        finally:
            plane.stop(seconds=60)


# -- helpers


def commit(clone: Clone, changes: list[str]) -> None:
    """A commit of these lines of fast-import on top of the branch, as the branch `small`: no work tree."""
    clone.git("fetch", "--quiet", "origin")
    head = clone.git("rev-parse", "origin/main").strip()
    lines = "\n".join(changes)
    text = f"commit refs/heads/small\ncommitter bench <bench@example.com> now\ndata 1\nx\nfrom {head}\n{lines}\n"
    git = ["git", "-C", str(clone.folder), "fast-import", "--quiet", "--force", "--date-format=now"]
    subprocess.run(git, input=text.encode(), check=True)


def timed(connection: Connection, path: str, accept: str) -> float:
    began = time.monotonic()
    answer = connection.request("GET", path, accept=accept)
    if answer.status != 200:
        raise PlaneError(f"GET {path}: {answer.status}")
    return time.monotonic() - began


def said(connection: Connection, url: str) -> str:
    answer = connection.request("GET", url)
    return str(answer.body["data"]["number"]) if answer.status == 200 else ""


def until(holds: Callable[[], bool], pause: float = 0.01) -> None:
    deadline = time.monotonic() + LONGEST
    while not holds():
        if time.monotonic() > deadline:
            raise PlaneError("it took too long")
        time.sleep(pause)


def own(footprint: Footprint) -> int:
    return sum(each.own for each in footprint.processes)


def settled(plane: Plane) -> Footprint:
    """Once what follows a load is done: no process worked for five seconds."""
    while True:
        before = {pid: taken.cpu_seconds for pid in plane.pids() if (taken := usage(pid))}
        time.sleep(5)
        after = {pid: taken.cpu_seconds for pid in plane.pids() if (taken := usage(pid))}
        if sum(after.values()) - sum(before.values()) < 1:
            return Footprint.of(plane)


@contextmanager
def most_memory(plane: Plane) -> Iterator[list[int]]:
    """What all processes have of their own, every two seconds."""
    found, ended = [own(Footprint.of(plane))], threading.Event()

    def look() -> None:
        while not ended.wait(2):
            found.append(sum(taken.own for pid in plane.pids() if (taken := usage(pid))))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join()


def row(name: str, seconds: list[float]) -> None:
    p50, most = (milliseconds(percentile(seconds, share)) for share in (0.5, 1))
    table(name, [["p50", p50], ["at most", most], ["how many", str(len(seconds))]])


if __name__ == "__main__":
    main()
