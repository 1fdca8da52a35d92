"""Workspaces that are made and deleted through the API, one by one and many at once.

    .venv/bin/python bench/workspaces.py 10000 [--commits 500] [--children 500]

Over TLS, in two workspaces of one server: in one writes go to the store, in the other they are commits. One client
waits for each workspace until it is Ready before it asks for the next; then 16 ask at once. All of the store's are
deleted with one request, and then one workspace with its children, which go before it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import uvloop
from api import served
from apiclient import Connection, Result, Server, load
from commit_writes import FLEET
from measure import milliseconds, percentile, table, verdict
from support.plane import Credentials, Plane

WORKSPACES = "/apis/tenancy.kcp.io/v1alpha1/workspaces"
SINGLE, CLIENTS = 200, 16
PAUSE = 0.05
LONGEST = 600.0
PARENT = "parent"
"""With a number behind it."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("number", type=int, nargs="?", default=10_000)
    parser.add_argument("--commits", type=int, default=500)
    parser.add_argument("--children", type=int, default=500)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="treeplane-bench-") as name:
        folder = Path(name)
        with served(folder, files=FLEET) as plane:
            uvloop.run(run(plane, options))


async def run(plane: Plane, options: argparse.Namespace) -> None:
    credentials = Credentials.read(plane.kubeconfig)
    store, commit, inner = (
        Server(path, credentials, f"/clusters/root:{path}", plane.pids)
        for path in ("store-1", "commit-1", f"store-1:{PARENT}0")
    )
    number = options.number
    alone = await one_by_one(store, SINGLE)
    many = await at_once(store, [f"m{n}" for n in range(number - SINGLE)])
    committed = await at_once(commit, [f"c{n}" for n in range(options.commits)])
    every = await ended(store, WORKSPACES, number)
    await one_by_one(store, 1, PARENT)
    await at_once(inner, [f"w{n}" for n in range(options.children)])
    deep = await ended(store, f"{WORKSPACES}/{PARENT}0", options.children)
    rows = [["", "workspaces", "a second", "p50", "p99", "CPU ms each"]]
    for title, result in (
        ("made in the store until Ready, one client", alone),
        (f"made in the store until all are Ready, {CLIENTS} clients", many),
        (f"made by commits, {CLIENTS} clients", committed),
        ("deleted with one request", every),
        ("deleted with their parent", deep),
    ):
        shares = [milliseconds(percentile(result.latencies, share)) for share in (0.5, 0.99)]
        rows.append([title, str(result.count), f"{result.rate:.0f}", *shares, f"{result.cost:.1f}"])
    table("workspaces through the API", rows)
    median, most = percentile(alone.latencies, 0.5), number / 2000
    table(
        "expected",
        [
            ["one in the store, median", milliseconds(median), "< 20 ms", verdict(median < 0.02)],
            ["by commits, a second", f"{committed.rate:.0f}", ">= 100", verdict(committed.rate >= 100)],
            [f"{number} deleted", f"{every.seconds:.1f} s", f"<= {most:.1f} s", verdict(every.seconds <= most)],
        ],
    )


def post(server: Server, name: str) -> bytes:
    body = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": name}}
    return server.request("POST", WORKSPACES, json.dumps(body).encode())


async def one_by_one(server: Server, number: int, prefix: str = "s") -> Result:
    """Each is asked for when the one before is Ready."""
    connection, cpu, begin = await server.connect(), server.cpu(), time.perf_counter()
    result = Result(number, 0, 0)
    for at in range(number):
        began, name = time.perf_counter(), f"{prefix}{at}"
        await asked(connection, post(server, name))
        while (await asked(connection, server.request("GET", f"{WORKSPACES}/{name}")))["status"]["phase"] != "Ready":
            await asyncio.sleep(0.001)
        result.latencies.append(time.perf_counter() - began)
    result.seconds, result.cpu = time.perf_counter() - begin, server.cpu() - cpu
    connection.transport.close()
    return result


async def at_once(server: Server, names: Iterable[str]) -> Result:
    """Latencies are those of the answers."""
    cpu, begin = server.cpu(), time.perf_counter()
    result = await load(server, [post(server, name) for name in names], CLIENTS)
    await nothing_at(server, f"{WORKSPACES}?limit=1&labelSelector=tenancy.kcp.io/phase!=Ready")
    result.seconds, result.cpu = time.perf_counter() - begin, server.cpu() - cpu
    return result


async def ended(server: Server, path: str, number: int) -> Result:
    """Until nothing is there any more. The latency is that of the request."""
    cpu, begin = server.cpu(), time.perf_counter()
    result = await load(server, [server.request("DELETE", path)], 1)
    await nothing_at(server, f"{WORKSPACES}?limit=1")
    result.count, result.seconds, result.cpu = number, time.perf_counter() - begin, server.cpu() - cpu
    return result


async def nothing_at(server: Server, path: str) -> None:
    connection, until = await server.connect(), time.monotonic() + LONGEST
    while (await asked(connection, server.request("GET", path)))["items"]:
        if time.monotonic() > until:
            raise RuntimeError(f"{server.name}: there is something at {path} after {LONGEST:.0f} s")
        await asyncio.sleep(PAUSE)
    connection.transport.close()


async def asked(connection: Connection, request: bytes) -> Any:
    connection.body = []
    status = await connection.send(request)
    body = b"".join(connection.body)
    if status not in (200, 201):
        raise RuntimeError(f"{status} to {request[:200]!r}: {body[:500]!r}")
    return json.loads(body)


if __name__ == "__main__":
    main()
