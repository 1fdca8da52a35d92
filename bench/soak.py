"""A long, steady load: whether the memory of the reconciler and of the API workers stays what it is.

    .venv/bin/python bench/soak.py [--minutes 15] [--rate 7] [--before 8000]

The example fleet, hosted, with one API worker, and a workspace whose writes are commits. At a steady rate objects there
are created, updated and deleted, each write a commit; one commit in seven is pushed instead, and changes a ConfigMap
that runs on a sync target. Beside them somebody reads, lists and opens connections, and watches come and go; the number
of objects stays the same, so nothing has a reason to grow but history on disk. What is remembered has bounds, so the
first commits are made as fast as they go, until those are reached.

Counted is the processes' own memory (Usage.anonymous), not the store's file, whose pages are the kernel's to keep or
drop; and of each two minutes the least, since garbage is collected now and then. Printed is the line of least squares
through these. Ends with 1 where it is steeper than expected.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import linear_regression

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import uvloop
from api import config_map, maps
from apiclient import Connection, Server
from measure import Usage, size, table, usage, verdict
from support.plane import Clone, Credentials, Plane, PlaneError

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "fleet-repo"
ADDED = {
    "workspaces/root/soaked.yaml": """
apiVersion: tenancy.kcp.io/v1alpha1
kind: WorkspaceType
metadata: {name: soaked}
spec: {writes: Commit}
""",
    "workspaces/root/soak/workspace.yaml": """
apiVersion: tenancy.kcp.io/v1alpha1
kind: Workspace
spec: {type: {name: soaked, path: root}}
""",
}
PUSHED = "workspaces/root/shop/web/soak.yaml"
OBJECTS = 64
"""How many names the writes go round; every fourth round deletes."""
ROUNDS = 4
PUSH_EVERY = 7
WATCHES = 8
RECONNECT_EVERY = 10
SAMPLE_SECONDS = 5.0
WINDOW = 120.0
PER_COMMIT, PER_MINUTE = 2 * 1024, 256 * 1024
"""Bytes expected at most: of the reconciler for each commit, of a worker in each minute."""


Write = tuple[str, str, bytes]
"""Method, name in the path, body."""


@dataclass(frozen=True, slots=True)
class Sample:
    """`seconds`: by time.monotonic(). `commits` until then. By process id."""

    seconds: float
    commits: int
    processes: dict[int, Usage]


@dataclass(slots=True)
class Soak:
    """One run; `samples` are what it gives."""

    server: Server
    clone: Clone
    pids: Sequence[int]
    """Of the reconciler and the workers."""
    samples: list[Sample] = field(default_factory=list)
    commits: int = 0
    begun: float = math.inf
    """When the steady part began, by time.monotonic()."""

    async def run(self, before: int, seconds: float, rate: float) -> None:
        async with asyncio.TaskGroup() as group:
            others = [group.create_task(task) for task in (self._read(), self._watch(), self._sample())]
            connection, writes = await self.server.connect(), writing()
            while self.commits < before:
                await self._write(connection, next(writes))
            self.begun = time.monotonic()
            await self._steadily(connection, writes, self.begun + seconds, rate)
            for task in others:
                task.cancel()

    async def _steadily(self, connection: Connection, writes: Iterator[Write], end: float, rate: float) -> None:
        """One after the other, so that a push does not lose against a write; late ones are made up for."""
        due = time.monotonic()
        while due < end:
            await asyncio.sleep(due - time.monotonic())
            due += 1 / rate
            if self.commits % PUSH_EVERY == PUSH_EVERY - 1:
                await asyncio.to_thread(self._push)
                self.commits += 1
            else:
                await self._write(connection, next(writes))

    async def _write(self, connection: Connection, write: Write) -> None:
        method, name, body = write
        await answered(connection, self.server.request(method, maps("default", name), body))
        self.commits += 1

    def _push(self) -> None:
        self.clone.git("fetch", "--quiet")
        self.clone.git("reset", "--quiet", "--hard", "FETCH_HEAD")
        metadata = {"name": "soak", "namespace": "default"}
        content = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"number": str(self.commits)}}
        self.clone.write(PUSHED, json.dumps(content) + "\n")
        self.clone.commit(f"number {self.commits}")
        self.clone.push()

    async def _read(self) -> None:
        connection, number = await self.server.connect(), 0
        paths = (maps("default"), f"{maps('default')}?limit=10", "/api/v1/namespaces/default", "/api/v1/namespaces")
        while True:
            for path in paths:
                await answered(connection, self.server.request("GET", path))
            number += 1
            if number % RECONNECT_EVERY == 0:
                connection.transport.close()
                connection = await self.server.connect()
            await asyncio.sleep(0.2)

    async def _watch(self) -> None:
        """As many as WATCHES at a time; each second the oldest ends and another begins."""
        request = self.server.request("GET", f"{maps('default')}?watch=1")
        open_ones: list[Connection] = []
        while True:
            connection = await self.server.connect()
            await connection.watch(request, lambda: None)
            open_ones.append(connection)
            if len(open_ones) > WATCHES:
                open_ones.pop(0).transport.close()
            await asyncio.sleep(1)

    async def _sample(self) -> None:
        while True:
            processes = {pid: found for pid in self.pids if (found := usage(pid))}
            self.samples.append(Sample(time.monotonic(), self.commits, processes))
            if len(self.samples) % 12 == 0:
                progress(self.samples[-1])
            await asyncio.sleep(SAMPLE_SECONDS)


def writing() -> Iterator[Write]:
    """One after the other, round and round."""
    number = 0
    while True:
        for turn in range(ROUNDS):
            for each in range(OBJECTS):
                name, number = f"c-{each}", number + 1
                body = config_map("default", name, str(number))
                match turn:
                    case 0:
                        yield "POST", "", body
                    case 3:
                        yield "DELETE", name, b""
                    case _:
                        yield "PUT", name, body


async def answered(connection: Connection, request: bytes) -> None:
    connection.body = []
    status = await connection.send(request)
    if status not in (200, 201):
        raise RuntimeError(f"{status} to {request[:200]!r}: {b''.join(connection.body)[:500]!r}")


def progress(sample: Sample) -> None:
    shown = ", ".join(f"{each.name} {size(each.anonymous)}" for each in sample.processes.values())
    print(f"{sample.commits} commits: {shown}", file=sys.stderr, flush=True)


def servers(pids: Sequence[int]) -> list[int]:
    """The servers' own processes, without git's, which come and go."""
    names = {pid: found.name for pid in pids if (found := usage(pid))}
    return [pid for pid, name in names.items() if name.startswith(("reconciler", "apiserver"))]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--rate", type=float, default=7, help="commits a second")
    parser.add_argument("--before", type=int, default=8000, help="commits that do not count, as fast as they go")
    options = parser.parse_args()
    if options.minutes * 60 < 2 * WINDOW:
        parser.error(f"--minutes: at least {2 * WINDOW / 60:g}")
    with tempfile.TemporaryDirectory(prefix="treeplane-bench-") as name:
        folder = Path(name)
        shutil.copytree(EXAMPLE, folder / "fleet")
        for path, text in ADDED.items():
            (folder / "fleet" / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / "fleet" / path).write_text(text)
        with Plane(folder / "fleet", folder / "server" / "data", "--workers", "1") as plane:
            server = Server("treeplane", Credentials.read(plane.kubeconfig), "/clusters/root:soak", plane.pids)
            soak = Soak(server, plane.clone(folder / "clone"), servers(plane.pids()))
            uvloop.run(soak.run(options.before, options.minutes * 60, options.rate))
    if not report([each for each in soak.samples if each.seconds >= soak.begun]):
        sys.exit(1)


def report(samples: Sequence[Sample]) -> bool:
    """Whether all is as expected. Raises PlaneError if a process has ended in between."""
    if samples[0].processes.keys() != samples[-1].processes.keys():
        raise PlaneError("a process of the server has ended and was started again")
    rows = [["process", "at first", "at the end", "at most", "a commit", "a minute", "mapped files, at the end", ""]]
    good = True
    for pid, last in samples[-1].processes.items():
        least = windows(samples, pid)
        own = [each.processes[pid].anonymous for each in least]
        each_commit = linear_regression([each.commits for each in least], own).slope
        each_minute = linear_regression([each.seconds / 60 for each in least], own).slope
        flat = each_commit <= PER_COMMIT if last.name.startswith("reconciler") else each_minute <= PER_MINUTE
        good = good and flat
        most = max(each.processes[pid].anonymous for each in samples)
        figures = [signed(each_commit), signed(each_minute), size(last.mapped), verdict(flat)]
        rows.append([last.name, size(own[0]), size(own[-1]), size(most), *figures])
    seconds = samples[-1].seconds - samples[0].seconds
    commits = samples[-1].commits - samples[0].commits
    table(f"memory over {seconds / 60:.1f} minutes and {commits} commits, {commits / seconds:.1f} a second", rows)
    print(f"\nexpected at most {size(PER_COMMIT)} a commit (reconciler) and {size(PER_MINUTE)} a minute (worker)")
    return good


def windows(samples: Sequence[Sample], pid: int) -> list[Sample]:
    """Of each two minutes the sample in which a process took least."""
    found: dict[int, Sample] = {}
    for each in samples:
        number = int((each.seconds - samples[0].seconds) // WINDOW)
        if number not in found or each.processes[pid].anonymous < found[number].processes[pid].anonymous:
            found[number] = each
    return list(found.values())


def signed(count: float) -> str:
    return f"-{size(-count)}" if count < 0 else size(count)


if __name__ == "__main__":
    main()
