"""PartitionSets: their Partitions, over the Shards that there are.

A controller of the main store. Partitions are runtime objects that their set owns, so they go with it; what somebody
else declares or makes under the name of one is left alone, and said.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from apiserver.model import clock, origins
from apiserver.model.conditions import Condition, condition, merged
from apiserver.model.keys import Key
from apiserver.model.storagenames import PARTITIONS, SHARDS
from apiserver.registry import tree
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Check, Conflict, Store
from reconciler.controllers.controller import Controller
from reconciler.controllers.entry import Entry
from reconciler.plan.partitions import partitions

Object = dict[str, Any]

SETS = "partitionsets.topology.kcp.io"
_API, _KIND = "topology.kcp.io/v1alpha1", "PartitionSet"
_ALL = Key(SHARDS, "", "", "")
"""Stands for every PartitionSet: Shards changed."""


class PartitionSets(Controller[Key]):
    """By the key of a PartitionSet."""

    name = "partitionsets"
    version = "1"
    resources = frozenset({SETS, PARTITIONS, SHARDS})
    shown = frozenset({SETS})

    def __init__(self, store: Store) -> None:
        self._store, self._objects = store, Objects(store)

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        if entry.key.resource == SHARDS:
            yield _ALL
        elif entry.key.resource == PARTITIONS:
            for value in (entry.value, entry.previous):
                owner = _owner(orjson.loads(value)) if value is not None else None
                if owner is not None:
                    yield Key(SETS, entry.key.cluster, "", str(owner["name"]))
        elif entry.value is not None:
            yield entry.key

    def reconcile(self, key: Key) -> None:
        if key == _ALL:
            for each in self._objects.list(SETS):
                self.queue.add(
                    Key(SETS, each["metadata"]["annotations"]["kcp.io/cluster"], "", each["metadata"]["name"])
                )
            return
        inside = tree.check_there(self._store, key.cluster)
        found, record = self._objects.get(key), tree.workspace_of(self._store, key.cluster)
        if found is None or found["metadata"].get("deletionTimestamp") or record is None or record.leaves:
            return
        wanted = partitions(found, self._objects.list(SHARDS))
        foreign = sorted(self._provide(found, inside, wanted))
        self._objects.update(key, lambda obj: _told(obj, len(wanted), foreign))

    def _provide(self, owner: Object, inside: Check, wanted: dict[str, Object]) -> Iterable[str]:
        """Makes, corrects and takes away its Partitions; the names that others have."""
        uid, cluster = owner["metadata"]["uid"], owner["metadata"]["annotations"]["kcp.io/cluster"]
        listed = {each["metadata"]["name"]: each for each in self._objects.list(PARTITIONS, cluster)}
        for name, there in listed.items():
            if name not in wanted and _is_of(there, uid):
                self._objects.delete(Key(PARTITIONS, cluster, "", name), int(there["metadata"]["resourceVersion"]))
        for name, spec in wanted.items():
            key, known = Key(PARTITIONS, cluster, "", name), listed.get(name)
            if known is None:
                try:
                    self._objects.create(key, _made(owner, spec), runtime=True, inside=inside)
                except Conflict:
                    self.queue.add(Key(SETS, cluster, "", owner["metadata"]["name"]))
            elif not _is_of(known, uid):
                yield name
            elif known.get("spec") != spec:
                self._objects.update(key, lambda obj, spec=spec: {**obj, "spec": spec}, generation=True)  # type: ignore[misc]


def _owner(partition: Object) -> Object | None:
    owners = partition["metadata"].get("ownerReferences") or ()
    return next((o for o in owners if o.get("controller") and (o["apiVersion"], o["kind"]) == (_API, _KIND)), None)


def _is_of(partition: Object, uid: str) -> bool:
    owner = _owner(partition)
    return owner is not None and owner["uid"] == uid and not origins.file_of(partition)


def _made(owner: Object, spec: Object) -> Object:
    name, uid = owner["metadata"]["name"], owner["metadata"]["uid"]
    reference = {"apiVersion": _API, "kind": _KIND, "name": name, "uid": uid, "controller": True}
    metadata = {"ownerReferences": [{**reference, "blockOwnerDeletion": True}]}
    return {"apiVersion": _API, "kind": "Partition", "metadata": metadata, "spec": spec}


def _told(obj: Object, count: int, foreign: list[str]) -> Object:
    status, at = obj.get("status") or {}, clock.now()
    conditions = merged(status.get("conditions"), [condition("PartitionSetValid", True, at=at), _ready(foreign, at)])
    return {**obj, "status": {**status, "count": count, "conditions": conditions}}


def _ready(foreign: list[str], at: str) -> Condition:
    if not foreign:
        return condition("PartitionsReady", True, at=at)
    why = f"Partitions of these names are not its own: {', '.join(foreign)}; rename or remove them"
    return condition("PartitionsReady", False, "ErrorGeneratingPartitions", why, at=at)
