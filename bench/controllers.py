"""What the controllers read, decode and keep: at a start, and for each workspace that is loaded.

    .venv/bin/python bench/controllers.py 20000

A store with N copies of one small workspace (a ConfigMap that the loader loaded, one that it owns, an Event), without
processes or threads: what is counted does not depend on what else the machine does, CPU is that of the one thread. All
that the reconciler's process runs over the fleet's store takes part, without sync targets.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from measure import size, table
from support.countedstore import CountedStore
from support.loadedfleet import LoadedFleet

from apiserver.auth.pki import Signer, ensure_keys
from apiserver.model.keys import Key
from apiserver.registry import tree
from apiserver.registry.catalog import Catalog
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Op, Put, Record
from reconciler.controllers.clusterparts import Clusters, cluster_loops
from reconciler.controllers.feed import Feed
from reconciler.controllers.housekeeping import housekeeping
from reconciler.controllers.manager import CAREFUL, Manager
from reconciler.controllers.targets import Missing
from reconciler.controllers.tokensecrets import TokenSecrets
from reconciler.controllers.workspaceparts import workspace_loops
from reconciler.loading.identities import Identities
from reconciler.syncing.service import Syncing
from reconciler.syncing.settings import SyncSettings

FILES = {
    "workspaces/root/ws0000000/workspace.yaml": "",
    "workspaces/root/ws0000000/settings.yaml": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {number: '1'}\n"
    ),
}
TOGETHER = 64


@dataclass(frozen=True, slots=True)
class Cost:
    """`rows`: objects shown; `entries`: read of the log; `decoded`: JSON of whatever; `cpu`: seconds."""

    rows: int
    entries: int
    decoded: int
    cpu: float


def make(fleet: LoadedFleet) -> None:
    """What is made through the API: an object that has an owner, and an Event."""
    objects, cluster = Objects(fleet.store), fleet.record("root:ws0000000").cluster
    owner = objects.get(Key("configmaps", cluster, "default", "settings"))
    assert owner is not None
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "settings", "uid": owner["metadata"]["uid"]}
    owned = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"ownerReferences": [reference]}}
    objects.create(Key("configmaps", cluster, "default", "owned"), owned, runtime=True)
    event = {"kind": "Event", "apiVersion": "v1", "metadata": {}, "type": "Normal"}
    objects.create(Key("events", cluster, "default", "made"), event, runtime=True)


class Copies:
    """Of one workspace, with all that is the store's of it."""

    def __init__(self, fleet: LoadedFleet) -> None:
        self._store = fleet.store
        self._record = fleet.record("root:ws0000000")
        cluster = self._record.cluster
        inside = (r for name in fleet.store.resources(cluster) for r in fleet.store.scan(name, cluster).records)
        root = fleet.record("root").cluster
        beside = (r for r in fleet.store.scan("workspaces.tenancy.kcp.io", root).records if r.key.name == "ws0000000")
        self._records: list[Record] = [*inside, *beside]

    def make(self, number: int) -> list[Op]:
        name, cluster = f"ws{number:07d}", f"{number:016d}"

        def text(value: str) -> str:
            return value.replace("ws0000000", name).replace(self._record.cluster, cluster)

        ops: list[Op] = [Put(_key(r, text), text(r.value.decode()).encode(), stamp=r.stamp) for r in self._records]
        return [*ops, tree.put_workspace(replace(self._record, path=text(self._record.path), cluster=cluster))]

    def write(self, numbers: range, write: Callable[..., Any]) -> None:
        waiting = []
        for number in numbers:
            waiting.append(write(*self.make(number)))
            if len(waiting) == TOGETHER:
                waiting.pop(0).result()
        for each in waiting:
            each.result()


def _key(record: Record, text: Callable[[str], str]) -> Any:
    return type(record.key)(*map(text, record.key))


class Process:
    """What runs over the store, from one start on."""

    def __init__(self, fleet: LoadedFleet) -> None:
        self.store: Any = CountedStore(fleet.store)
        self.feed = Feed(self.store)
        signer = Signer(ensure_keys(fleet.keys))
        self.syncing = Syncing(self.feed, SyncSettings(), lambda _: Missing("none"), lambda _: None)
        self.managers = [
            housekeeping(self.feed, Catalog(self.store).kinds),
            cluster_loops(self.feed, Clusters.of_workspaces(self.store), "the CA"),
            Manager("workspaces", workspace_loops(self.store, Identities(fleet.keys / "identities")), self.feed),
            Manager("tokensecrets", [TokenSecrets(self.store, signer, "the CA", str)], self.feed, CAREFUL),
            *self.syncing._managers,
        ]

    def settle(self) -> None:
        for manager in self.managers:
            manager.settle()

    def end(self) -> None:
        self.feed.stop()


def measured(step: Callable[[], Process], counted: list[int]) -> tuple[Cost, Process]:
    before = len(counted)
    begun = time.thread_time()
    process = step()
    cpu = time.thread_time() - begun
    rows, entries = len(process.store.rows), len(process.store.entries)
    process.store.rows.clear()
    process.store.entries.clear()
    return Cost(rows, entries, len(counted) - before, cpu), process


def kept(step: Callable[[], Process]) -> int:
    """Bytes of Python that stay."""
    gc.collect()
    tracemalloc.start()
    process = step()
    process.store.rows.clear()
    process.store.entries.clear()
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    process.end()
    return taken


@contextmanager
def counting() -> Iterator[list[int]]:
    """One for each time that JSON is decoded, by whomever."""
    found: list[int] = []
    plain = orjson.loads

    def loads(value: Any) -> Any:
        found.append(1)
        return plain(value)

    orjson.loads = loads
    yield found
    orjson.loads = plain


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("workspaces", type=int, nargs="?", default=20_000)
    parser.add_argument("--more", type=int, default=2_000, help="workspaces that are loaded while they run")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="treeplane-bench-") as name:
        run(options.workspaces, options.more, Path(name))


def run(count: int, more: int, folder: Path) -> None:
    fleet = LoadedFleet(folder / "fleet")
    fleet.begin(FILES)
    make(fleet)
    copies = Copies(fleet)
    copies.write(range(1, count), fleet.store.fill)

    def start() -> Process:
        process = Process(fleet)
        process.settle()
        return process

    with counting() as counted:
        first, process = measured(start, counted)
        process.end()
        again, process = measured(start, counted)
        copies.write(range(count, count + more), fleet.store.write)
        loaded, _ = measured(lambda: settled(process), counted)
        process.end()
    memory = kept(start)
    each = Cost(loaded.rows // more, loaded.entries // more, loaded.decoded // more, loaded.cpu / more)
    steps = (("first start", first), ("start with nothing new", again), ("a loaded workspace", each))
    rows = [(name, str(c.rows), str(c.entries), str(c.decoded), f"{c.cpu * 1e6:,.0f} µs") for name, c in steps]
    table(f"{count:,} workspaces", [("", "objects shown", "entries read", "JSON decoded", "CPU"), *rows])
    table("kept in memory", [("controllers", size(memory))])
    fleet.close()


def settled(process: Process) -> Process:
    process.settle()
    return process


if __name__ == "__main__":
    main()
