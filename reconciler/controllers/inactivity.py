"""The phase of workspaces that are marked inactive through the API, or not any more.

A controller of the main store. What a workspace.yaml says of it is in the phase that a commit is loaded with
(loading/treeobjects), and what is said here stays when the next one is.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any

import orjson

from apiserver.model import paths
from apiserver.model.keys import Key
from apiserver.model.reserved import is_inactive
from apiserver.model.storagenames import LOGICAL_CLUSTERS, WORKSPACES
from apiserver.registry import codec, tree
from apiserver.registry.indexes import INACTIVE
from apiserver.registry.lifecycles import with_status
from apiserver.storage.protocol import Put, Store
from reconciler.controllers.controller import NO_RESOURCES, Controller
from reconciler.controllers.entry import Entry
from reconciler.plan import computed

Object = dict[str, Any]

_PHASES = (computed.READY, computed.INACTIVE)


class Inactivity(Controller[Key]):
    """By the key of a LogicalCluster."""

    name = "inactivity"
    version = "1"
    resources = frozenset({LOGICAL_CLUSTERS})
    beyond = NO_RESOURCES
    shown = frozenset()

    def __init__(self, store: Store) -> None:
        self._store = store

    def begin(self) -> None:
        for entry in self._store.indexed(INACTIVE):
            self.queue.add(entry.key)

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        if entry.value is not None and INACTIVE.hint in entry.value + (entry.previous or b""):
            yield entry.key

    def reconcile(self, key: Key) -> Future[list[int]] | None:
        record, found = tree.workspace_of(self._store, key.cluster), self._store.get(key)
        if record is None or found is None:
            return None
        cluster: Object = orjson.loads(found.value)
        inactive = is_inactive(cluster["metadata"].get("annotations") or {})
        phase = computed.INACTIVE if inactive else computed.READY
        parent = tree.workspace_at(self._store, record.parent) if record.parent else None
        keys = [key]
        if parent is not None:
            keys.append(Key(WORKSPACES, parent.cluster, "", paths.base(record.path)))
        puts = [put for each in keys if (put := self._in_phase(each, phase)) is not None]
        return self._store.write(*puts) if puts else None

    def _in_phase(self, key: Key, phase: str) -> Put | None:
        """What has an object say that phase; None where it does, or is in one that knows nothing of it."""
        record = self._store.get(key)
        obj: Object = orjson.loads(record.value) if record is not None else {}
        status = obj.get("status") or {}
        if record is None or status.get("phase") not in _PHASES or status["phase"] == phase:
            return None
        value = codec.encode(with_status(obj, {**status, "phase": phase}))
        return Put(key, value, record.revision, record.stamp)
