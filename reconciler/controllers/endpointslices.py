"""APIExportEndpointSlices: where a provider finds its consumers, from the first of them on.

A controller of the main store. A slice is looked at when it changes, when its export does, and when a binding to that
comes or goes; whether there is one is a look into an index. So is one that names a Partition, when that does, and one
that names its provider by a path, when that goes or moves. All Shards are this server, which has one address: a slice
that names a Partition has it where that selects a Shard.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import Any, NamedTuple

import orjson

from apiserver.model import clock, conditions
from apiserver.model.conditions import Condition, condition
from apiserver.model.keys import Internal, Key
from apiserver.model.selectors import from_object
from apiserver.model.storagenames import BINDINGS, EXPORTS, PARTITIONS, SHARDS, SLICES
from apiserver.registry import codec, indexes, tree
from apiserver.registry.endpointslices import address
from apiserver.registry.sharing import SharedExport, shared_export
from apiserver.storage.paging import pages
from apiserver.storage.protocol import Put, Record, Store
from reconciler.controllers.controller import Controller
from reconciler.controllers.entry import Entry

Object = dict[str, Any]


class Lacking(NamedTuple):
    """Why a slice has no address."""

    reason: str
    why: str


_NO_CONSUMERS = Lacking("NoConsumers", "no APIBinding is bound to the export: there is nothing to see yet")
_NO_SHARDS = Lacking("NoShards", "the Partition selects no Shard: there is nothing to see there")
_ALL = Key(SHARDS, "", "", "")
"""Stands for every slice that names a Partition: Shards changed."""


class EndpointSlices(Controller[Key]):
    """By the key of an APIExportEndpointSlice."""

    name = "endpointslices"
    version = "1"
    resources = frozenset({SLICES, EXPORTS, BINDINGS, PARTITIONS, SHARDS, Internal.WORKSPACE})
    shown = frozenset({SLICES})

    def __init__(self, store: Store) -> None:
        self._store = store

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        key = entry.key
        if key.resource == SLICES:
            if entry.value is not None:
                yield key
        elif key.resource == EXPORTS:
            yield from self._of(key.cluster, key.name)
        elif key.resource == PARTITIONS:
            yield from self._naming(key)
        elif key.resource == SHARDS:
            yield _ALL
        elif key.resource == Internal.WORKSPACE:
            for path in tree.places_left(entry.value, entry.previous):
                yield from (found.key for found in self._store.indexed(indexes.SLICED, indexes.sliced(path, "")))
        else:
            for value in (entry.previous, entry.value):
                yield from self._of_bound(value)

    def _naming(self, partition: Key) -> Iterator[Key]:
        """The slices of its workspace that name a Partition that came or went."""
        for record in self._store.scan(SLICES, partition.cluster, count=False).records:
            if orjson.loads(record.value)["spec"].get("partition") == partition.name:
                yield record.key

    def _of_bound(self, value: bytes | None) -> Iterator[Key]:
        binding = orjson.loads(value) if value is not None else {}
        status = binding.get("status") or {}
        if status.get("phase") == "Bound":
            yield from self._of(status.get("apiExportClusterName", ""), binding["spec"]["reference"]["export"]["name"])

    def _of(self, cluster: str, export: str) -> Iterator[Key]:
        """The slices that name an export, by where it is or by its own workspace."""
        record = tree.workspace_of(self._store, cluster)
        for place in {cluster, record.path if record is not None else cluster}:
            term = indexes.sliced(place, export)
            yield from (found.key for found in self._store.indexed(indexes.SLICED, term, whole=True))

    def reconcile(self, key: Key) -> Future[list[int]] | None:
        if key == _ALL:
            for page in pages(self._store, SLICES):
                for each in (r for r in page if orjson.loads(r.value)["spec"].get("partition")):
                    self.queue.add(each.key)
            return None
        record = self._store.get(key)
        if record is None:
            return None
        found = orjson.loads(record.value)
        export = self._export(key.cluster, found["spec"]["export"])
        named = str(found["spec"].get("partition") or "")
        partition = self._store.get(Key(PARTITIONS, key.cluster, "", named)) if named else None
        lacking = self._lacking(export, partition)
        there = found.get("status") or {}
        told = [*_of_export(export, found), _of_partition(named, partition), _ready(lacking)]
        merged = conditions.merged(there.get("conditions"), told)
        status: Object = {"conditions": [dict(sorted(each.items())) for each in merged]}  # as a recovery has them
        if export is not None and lacking is None:
            status["endpoints"] = [{"url": address(export)}]
        value = codec.encode({**found, "status": status})
        return self._store.write(Put(key, value, record.revision, record.stamp)) if value != record.value else None

    def _export(self, cluster: str, named: Object) -> SharedExport | None:
        row = tree.workspace_row(self._store, named["path"]) if named.get("path") else None
        if named.get("path"):
            provider = tree.workspace_at(self._store, row.key) if row is not None else None
            cluster = provider.cluster if provider is not None else ""
        return shared_export(self._store, cluster, named["name"]) if cluster else None

    def _is_taken(self, export: SharedExport) -> bool:
        return bool(self._store.indexed(indexes.TAKEN, indexes.taken(export.cluster, export.name), whole=True, limit=1))

    def _lacking(self, export: SharedExport | None, partition: Record | None) -> Lacking | None:
        """Why there is no address; None where there is one."""
        if export is None or not self._is_taken(export):
            return _NO_CONSUMERS
        return None if partition is None or self._selects_any(orjson.loads(partition.value)) else _NO_SHARDS

    def _selects_any(self, partition: Object) -> bool:
        wanted = from_object(partition["spec"].get("selector") or {})
        shards = (orjson.loads(record.value) for page in pages(self._store, SHARDS) for record in page)
        return any(wanted.matches(shard["metadata"].get("labels") or {}) for shard in shards)


def _of_partition(name: str, found: Record | None) -> Condition:
    """`name`: "" where none is named."""
    if not name or found is not None:
        return condition("PartitionValid", True, at=clock.now())
    why = f"no Partition {name} in this workspace: declare it, or take spec.partition away"
    return condition("PartitionValid", False, "PartitionInvalidReference", why, at=clock.now())


def _of_export(export: SharedExport | None, found: Object) -> Iterator[Condition]:
    if export is not None:
        yield condition("APIExportValid", True, at=clock.now())
        return
    named = found["spec"]["export"]
    why = f"no APIExport {named['name']} in workspace {named.get('path') or 'of its own'}: declare it there"
    yield condition("APIExportValid", False, "APIExportNotFound", why, at=clock.now())


def _ready(lacking: Lacking | None) -> Condition:
    reason, why = lacking if lacking is not None else ("", "")
    return condition("EndpointURLsReady", lacking is None, reason, why, at=clock.now())
