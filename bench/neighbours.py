"""What somebody else waits for while N workspaces are made through the API, and deleted with one request.

    .venv/bin/python bench/neighbours.py 6000

Two clients create ConfigMaps in workspaces of their own, one after the other, each a fiftieth of a second after its
answer: in one writes are commits, in the other they go to the store alone. Beside that, how often the threads of the
server's processes gave way to each other for each workspace that was deleted.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import uvloop
from api import config_map, maps, served
from apiclient import Server
from commit_writes import FLEET
from measure import milliseconds, percentile, table, verdict
from support.plane import Credentials, Plane
from workspaces import CLIENTS, WORKSPACES, at_once, ended

PAUSE, QUIET = 0.02, 8.0
EXPECTED = 0.1
"""Seconds of a write that is a commit, the median: what one alone may take (commit_writes.py)."""


class Neighbour:
    """Who writes one ConfigMap after the other."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._names = count()
        self._latencies: list[float] = []

    async def _work(self) -> None:
        connection = await self.server.connect()
        for name in self._names:
            request = self.server.request("POST", maps("default"), config_map("default", f"n{name}"))
            began = time.perf_counter()
            status = await connection.send(request)
            self._latencies.append(time.perf_counter() - began)
            if status != 201:
                raise RuntimeError(f"{self.server.name}: {status}")
            await asyncio.sleep(PAUSE)

    @asynccontextmanager
    async def at_work(self, found: list[float]) -> AsyncIterator[None]:
        """`found` has the latencies then."""
        self._latencies = found
        task = asyncio.create_task(self._work())
        yield
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("number", type=int, nargs="?", default=6_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="treeplane-bench-") as name:
        folder = Path(name)
        with served(folder, files=FLEET) as plane:
            uvloop.run(run(plane, options.number))


async def run(plane: Plane, number: int) -> None:
    credentials = Credentials.read(plane.kubeconfig)
    busy, store, commit = (
        Server(path, credentials, f"/clusters/root:{path}", plane.pids) for path in ("store-1", "store-8", "commit-8")
    )
    neighbours = Neighbour(store), Neighbour(commit)
    made: tuple[list[float], list[float]] = [], []
    gone: tuple[list[float], list[float]] = [], []
    async with neighbours[0].at_work(made[0]), neighbours[1].at_work(made[1]):
        came = await at_once(busy, [f"m{n}" for n in range(number)])
    await asyncio.sleep(QUIET)
    before = given_way(plane.pids())
    async with neighbours[0].at_work(gone[0]), neighbours[1].at_work(gone[1]):
        went = await ended(busy, WORKSPACES, number)
    rows = [["", "writes", "p50", "p90", "at most"]]
    for title, found in (("are made", made), ("are deleted", gone)):
        for kind, latencies in zip(("to the store", "as a commit"), found, strict=True):
            shares = [milliseconds(percentile(latencies, share)) for share in (0.5, 0.9, 1.0)]
            rows.append([f"{kind}, while {number} {title}", str(len(latencies)), *shares])
    table("one write of somebody else's", rows)
    changes = (given_way(plane.pids()) - before) / number
    table(f"meanwhile, {CLIENTS} clients and one request", [
        ["made", f"{came.rate:.0f} a second"],
        ["deleted", f"{went.rate:.0f} a second"],
        ["threads that gave way for each that was deleted", f"{changes:.1f}"],
    ])  # fmt: skip
    rows = []
    for title, latencies in (("made", made[1]), ("deleted", gone[1])):
        median = percentile(latencies, 0.5)
        limit = f"<= {milliseconds(EXPECTED)}"
        rows.append([f"as a commit, while they are {title}", milliseconds(median), limit, verdict(median <= EXPECTED)])
    table("expected, the median", rows)


def given_way(pids: Iterable[int]) -> int:
    """How often threads of these processes waited so far, for the interpreter above all."""
    return sum(_waits(file) for pid in pids for file in Path(f"/proc/{pid}/task").glob("*/status"))


def _waits(status: Path) -> int:
    with suppress(OSError):  # it ended
        lines = status.read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("voluntary"))
    return 0


if __name__ == "__main__":
    main()
