"""What a Workspace that is a mount says of it: the condition WorkspaceMountReady, and the phase Ready or Unavailable.

A controller of the main store. Requests are not served by what it writes: they look at the object itself
(registry/mounts).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any

import orjson

from apiserver.model import clock, conditions
from apiserver.model.conditions import condition
from apiserver.model.keys import Key
from apiserver.model.storagenames import WORKSPACES
from apiserver.registry import codec, mounts
from apiserver.registry.indexes import MOUNTS, mounted
from apiserver.registry.kindtable import KindTable
from apiserver.registry.lifecycles import with_status
from apiserver.storage.protocol import Put, Store
from reconciler.controllers.controller import EVERYTHING, NO_RESOURCES, Controller
from reconciler.controllers.entry import Entry
from reconciler.plan import computed

Object = dict[str, Any]

_MARK = f'"{mounts.IS_MOUNT}"'.encode()
_PHASES = (computed.READY, computed.UNAVAILABLE)


class Mounts(Controller[Key]):
    """By the key of a Workspace. `kinds`: those that a workspace serves, by its logical cluster name."""

    name = "mounts"
    version = "1"
    resources = EVERYTHING
    shown = beyond = NO_RESOURCES

    def __init__(self, store: Store, kinds: Callable[[str], KindTable]) -> None:
        self._store, self._kinds = store, kinds

    def begin(self) -> None:
        for entry in self._store.indexed(MOUNTS):
            self.queue.add(entry.key)

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        key, value, previous = entry.key, entry.value or b"", entry.previous or b""
        if key.resource == WORKSPACES:
            if MOUNTS.hint in value:
                yield key
        elif _MARK in value or _MARK in previous:
            for found in self._store.indexed(MOUNTS, mounted(key.cluster, key.name), whole=True):
                yield found.key

    def reconcile(self, key: Key) -> Future[list[int]] | None:
        record = self._store.get(key)
        workspace: Object = orjson.loads(record.value) if record is not None else {}
        ref, status = mounts.reference_of(workspace), workspace.get("status") or {}
        if record is None or ref is None or status.get("phase") not in _PHASES:
            return None
        state = mounts.state_of(self._store, self._kinds(key.cluster), key.cluster, ref)
        told = condition(mounts.READY, bool(state.url), state.reason, state.message, at=clock.now())
        new = {
            **status,
            "phase": computed.READY if state.url else computed.UNAVAILABLE,
            "conditions": conditions.merged(status.get("conditions"), [told]),
        }
        if new == status:
            return None
        value = codec.encode(with_status(workspace, new))
        return self._store.write(Put(key, value, record.revision, record.stamp))
