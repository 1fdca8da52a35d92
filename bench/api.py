"""Treeplane beside a real kube-apiserver with etcd: the same requests from the same program, one after the other.

    .venv/bin/python bench/api.py [--scale 1.0] [--only get,list] [--json FILE]

Both run on this machine over TLS and write to disk before they answer; Treeplane serves a workspace of type
kube-compat. Objects are ConfigMaps of half a kilobyte. What counts is the server's CPU time for a request, all of its
processes together (kube-apiserver and etcd; the parent, API workers and the reconciler), since client and servers share
the cores. `--scale` changes how many requests are sent. The ratios are kube-apiserver's cost over Treeplane's: above 1,
Treeplane does more with a second of CPU.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import uvloop
from apiclient import Result, Server, Watches, load
from measure import percentile, size, table, usage, verdict
from realclusters import binaries
from realclusters.cluster import RealCluster
from support.plane import Credentials, Plane

FLEET = {
    "treeplane.yaml": "apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {name: bench}\n",
    "workspaces/root/bench/workspace.yaml": """
apiVersion: tenancy.kcp.io/v1alpha1
kind: Workspace
spec: {type: {name: kube-compat, path: root}}
""",
}
CONNECTIONS = 16
SOME, MANY = 500, 10_000
WATCHERS = 1_000
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
READS, WATCH_ONE, WATCH_BURST, WRITES = 1.5, 1.0, 1.5, 1.0
"""What is expected of the ratios."""


@dataclass(frozen=True, slots=True)
class Case:
    """`unit`: what `count` counts."""

    name: str
    expected: float
    result: Result
    unit: str = "requests"


def config_map(namespace: str, name: str, value: str = "x") -> bytes:
    data = {"value": value, "text": "some lines of configuration, as they are in most of them. " * 4}
    metadata = {"name": name, "namespace": namespace, "labels": {"app": "bench", "part": name[-1]}}
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}).encode()


def maps(namespace: str, name: str = "") -> str:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    return f"{path}/{name}" if name else path


class Bench:
    """All cases on one server."""

    def __init__(self, server: Server, scale: float, only: Sequence[str]) -> None:
        self.server = server
        self.cases: list[Case] = []
        self._scale = scale
        self._only = only

    def _wants(self, name: str) -> bool:
        return not self._only or any(name.lower().startswith(part.lower()) for part in self._only)

    async def _run(self, name: str, expected: float, requests: Sequence[bytes]) -> None:
        if not self._wants(name):
            return
        found = await load(self.server, requests, CONNECTIONS)
        self.cases.append(Case(name, expected, found))
        print(f"{self.server.name}: {name}: {found.rate:.0f}/s, {found.cost:.2f} s CPU per 1,000", file=sys.stderr)

    def _times(self, count: int) -> int:
        return max(CONNECTIONS, int(count * self._scale))

    async def fill(self) -> None:
        request = self.server.request
        spaces = [json.dumps({"metadata": {"name": name}}).encode() for name in ("some", "many", "writes")]
        await load(self.server, [request("POST", "/api/v1/namespaces", body) for body in spaces], 1)
        await asyncio.sleep(2)
        bodies = [("some", f"c-{i}") for i in range(SOME)] + [("many", f"c-{i}") for i in range(MANY)]
        await load(self.server, [request("POST", maps(ns), config_map(ns, name)) for ns, name in bodies], CONNECTIONS)

    async def reads(self) -> None:
        request, times = self.server.request, self._times
        one = [request("GET", maps("some", f"c-{i % SOME}")) for i in range(times(10_000))]
        cached = [request("GET", maps("some", f"c-{i % SOME}") + "?resourceVersion=0") for i in range(times(10_000))]
        await self._run("GET", READS, one)
        await self._run("GET from cache", READS, cached)
        for name, space, count in ((f"LIST {SOME}", "some", 500), (f"LIST {MANY}", "many", 32)):
            whole, rows = request("GET", maps(space)), request("GET", maps(space), accept=TABLE)
            from_cache = request("GET", maps(space) + "?resourceVersion=0")
            await self._run(name, READS, [whole] * times(count))
            await self._run(f"{name} from cache", READS, [from_cache] * times(count))
            await self._run(f"{name} as Table", READS, [rows] * times(count // 2))

    async def writes(self) -> None:
        request, times = self.server.request, self._times
        count = times(4_000)
        names = [f"w-{i}" for i in range(count)]
        await self._run("create", WRITES, [request("POST", maps("writes"), config_map("writes", n)) for n in names])
        put = [request("PUT", maps("some", f"c-{i % SOME}"), config_map("some", f"c-{i % SOME}", f"u{i}"))
               for i in range(count)]  # fmt: skip
        await self._run("update", WRITES, put)
        query, kind = "?fieldManager=bench&force=true", "application/apply-patch+yaml"
        applied = [
            request("PATCH", maps("some", f"c-{i % SOME}") + query, config_map("some", f"c-{i % SOME}", f"a{i}"), kind)
            for i in range(count)
        ]
        await self._run("apply patch", WRITES, applied)

    async def watches(self) -> None:
        if not self._wants("watch"):
            return
        watches = Watches(self.server, self.server.request("GET", await self._watch_path()))
        await watches.open(WATCHERS)
        await asyncio.sleep(1)
        try:
            await self._single(watches)
            await self._burst(watches)
        finally:
            watches.close()

    async def _watch_path(self) -> str:
        connection = await self.server.connect()
        connection.body = []
        await connection.send(self.server.request("GET", maps("some") + "?limit=1"))
        connection.transport.close()
        version = json.loads(b"".join(connection.body))["metadata"]["resourceVersion"]
        return f"{maps('some')}?watch=1&resourceVersion={version}"

    def _update(self, number: int) -> bytes:
        name = f"c-{number % SOME}"
        return self.server.request("PUT", maps("some", name), config_map("some", name, f"e{number}-{time.time()}"))

    async def _single(self, watches: Watches) -> None:
        """One event at a time; a time is from the write's begin until the last watcher has it."""
        writer = await self.server.connect()
        events = self._times(100)
        found = Result(events * WATCHERS, 0, 0)
        cpu, begin = self.server.cpu(), time.perf_counter()
        for number in range(events):
            all_have_it = watches.expect(number + 1)
            start = time.perf_counter()
            await writer.send(self._update(number))
            await asyncio.wait_for(all_have_it, 60)
            found.latencies.append(time.perf_counter() - start)
        found.seconds, found.cpu = time.perf_counter() - begin, self.server.cpu() - cpu
        writer.transport.close()
        self.cases.append(Case(f"watch: {events} single events to {WATCHERS} watchers", WATCH_ONE, found, "events"))

    async def _burst(self, watches: Watches) -> None:
        """1,000 writes as fast as they go; a time is until every watcher has all of them."""
        events = self._times(1_000)
        have = watches.connections[0].lines
        found = Result(events * WATCHERS, 0, 0)
        all_have_them = watches.expect(have + events)
        cpu, begin = self.server.cpu(), time.perf_counter()
        await load(self.server, [self._update(number) for number in range(events)], CONNECTIONS)
        await asyncio.wait_for(all_have_them, 300)
        found.seconds, found.cpu = time.perf_counter() - begin, self.server.cpu() - cpu
        found.latencies.append(found.seconds)
        self.cases.append(Case(f"watch: burst of {events} events to {WATCHERS} watchers", WATCH_BURST, found, "events"))


def measure(server: Server, scale: float, only: Sequence[str]) -> tuple[list[Case], list[list[str]]]:
    """The cases, and rows of what its processes hold in memory: before anything was asked, and after all of it."""
    bench = Bench(server, scale, only)

    async def run() -> None:
        await bench.fill()
        await bench.reads()
        await bench.writes()
        await bench.watches()

    before = {pid: found for pid in server.pids() if (found := usage(pid))}
    uvloop.run(run())
    rows = []
    for pid in server.pids():
        if found := usage(pid):
            begun = before.get(pid, found)
            rows.append([server.name, found.name, size(begun.own), size(found.own), size(found.mapped)])
    return bench.cases, rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--only", default="", help="names of cases begin with one of these: get,list,create,watch")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--server", choices=["both", "treeplane"], default="both")
    options = parser.parse_args()
    only = [part for part in options.only.split(",") if part]
    print(f"load before: {', '.join(f'{value:.2f}' for value in os.getloadavg())} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory(prefix="treeplane-bench-") as name:
        folder = Path(name)
        kube: list[Case] = []
        memory: list[list[str]] = [["server", "process", "at first", "at the end", "mapped files"]]
        if options.server == "both":
            with RealCluster("peer", folder / "peer", binaries.find(), workloads=False, durable=True) as cluster:
                at = Credentials.read(cluster.kubeconfig_path)
                server = Server("kube-apiserver", at, "", lambda: list(cluster.pids.values()))
                kube, rows = measure(server, options.scale, only)
                memory += rows
        with served(folder) as plane:
            at = Credentials.read(plane.kubeconfig)
            mine, rows = measure(Server("treeplane", at, "/clusters/root:bench", plane.pids), options.scale, only)
            memory += rows
    report(kube, mine)
    table("memory", memory)
    if options.json:
        options.json.write_text(json.dumps({"kube-apiserver": _plain(kube), "treeplane": _plain(mine)}, indent=1))


def served(folder: Path, *arguments: str, files: Mapping[str, str] = FLEET) -> Plane:
    """A fleet of these files, which is served once the plane is entered."""
    repository = folder / "fleet"
    for path, text in files.items():
        (repository / path).parent.mkdir(parents=True, exist_ok=True)
        (repository / path).write_text(text)
    return Plane(repository, folder / "server" / "data", *arguments)


def _plain(cases: Sequence[Case]) -> dict[str, Any]:
    return {c.name: {"rate": c.result.rate, "cost": c.result.cost, "p50": percentile(c.result.latencies, 0.5),
                     "p99": percentile(c.result.latencies, 0.99)} for c in cases}  # fmt: skip


def report(kube: Sequence[Case], mine: Sequence[Case]) -> None:
    rows = [["", "", "per second", "p50", "p99", "CPU s per 1,000", "ratio", "expected", ""]]
    peers = {case.name: case for case in kube}
    for case in mine:
        peer = peers.get(case.name)
        if peer:
            rows.append([case.name, "kube-apiserver", *_figures(peer)])
        ratio = peer.result.cost / case.result.cost if peer and case.result.cost else 0.0
        judged = [f"{ratio:.2f}", f"{case.expected:.1f}", verdict(ratio >= case.expected)] if peer else []
        rows.append(["" if peer else case.name, "treeplane", *_figures(case), *judged])
    table("requests (events of watches) and what the server spends on them", rows)


def _figures(case: Case) -> list[str]:
    found = case.result
    p50, p99 = (percentile(found.latencies, share) * 1000 for share in (0.5, 0.99))
    return [f"{found.rate:.0f}", f"{p50:.1f} ms", f"{p99:.1f} ms", f"{found.cost:.3f}"]


if __name__ == "__main__":
    main()
