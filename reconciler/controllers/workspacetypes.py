"""WorkspaceTypes that are made through the API where writes go to the store: each says whether it can be used.

A controller of the main store. Of one that git declares, loading says the same (loading/statuses).
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any

import orjson

from apiserver.model import clock
from apiserver.model.keys import Key
from apiserver.model.storagenames import TYPES
from apiserver.registry import codec
from apiserver.storage.protocol import Put, Store
from reconciler.controllers.controller import Controller
from reconciler.controllers.entry import Entry
from reconciler.loading.consumers import is_stored
from reconciler.loading.statuses import type_conditions
from reconciler.plan.unsupported import with_stated

Object = dict[str, Any]


class WorkspaceTypes(Controller[Key]):
    """By the key of a WorkspaceType."""

    name = "workspacetypes"
    version = "1"
    resources = frozenset({TYPES})

    def __init__(self, store: Store) -> None:
        self._store = store

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        if entry.value is not None and is_stored(entry.obj):
            yield entry.key

    def reconcile(self, key: Key) -> Future[list[int]] | None:
        record = self._store.get(key)
        found: Object | None = orjson.loads(record.value) if record is not None else None
        if record is None or found is None or not is_stored(found):
            return None
        there = found.get("status") or {}
        new = [{**each, "lastTransitionTime": clock.now()} for each in type_conditions(found)]
        told = with_stated(there.get("conditions") or (), new)
        value = codec.encode({**found, "status": {**there, "conditions": told}})
        return self._store.write(Put(key, value, record.revision, record.stamp)) if value != record.value else None
