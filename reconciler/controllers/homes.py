"""Home workspaces, which are made for whoever asks for one, and go when their LogicalCluster is deleted.

A controller of the main store. A request that asks leaves word in the store (apiserver/endpoints/homeworkspaces); it is
taken away with what makes the home. A home leaves as any workspace does in which something waits (loading/departure).
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import Future

import orjson

from apiserver.model.commits import NONE
from apiserver.model.keys import Internal, Key
from apiserver.model.storagenames import LOGICAL_CLUSTERS
from apiserver.registry import indexes, tree
from apiserver.storage.protocol import Delete, Store
from reconciler.controllers.controller import NO_RESOURCES, Controller
from reconciler.controllers.entry import Entry
from reconciler.controllers.workspaces import gone
from reconciler.loading import departure
from reconciler.loading.moment import Moment
from reconciler.loading.storedworkspaces import Unscheduled, home

_DYING = b'"deletionTimestamp"'
_LATER = 10.0
"""Seconds until the type is looked for again, where it cannot be had."""


class HomeWorkspaces(Controller[Key]):
    """By the key of what was left, or of a LogicalCluster."""

    name = "homes"
    version = "2"
    resources = frozenset({Internal.HOME, LOGICAL_CLUSTERS})
    beyond = NO_RESOURCES
    shown = frozenset({Internal.HOME})

    def __init__(self, store: Store) -> None:
        self._store = store

    def begin(self) -> None:
        for found in self._store.indexed(indexes.ENDING, LOGICAL_CLUSTERS, whole=True):
            self.queue.add(found.key)

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        if entry.value is not None and (entry.key.resource == Internal.HOME or _DYING in entry.value):
            yield entry.key

    def reconcile(self, key: Key) -> Future[list[int]] | None:
        return self._end(key) if key.resource == LOGICAL_CLUSTERS else self._make(key)

    def _end(self, key: Key) -> Future[list[int]] | None:
        with self._store.view() as view:
            there, found = tree.workspace_of(view, key.cluster), view.get(key)
            if there is None or not there.is_home or there.leaves or found is None:
                return None
            if not orjson.loads(found.value)["metadata"].get("deletionTimestamp"):
                return None
            if departure.is_over(view, there, None):
                return self._store.write(*gone(view, there, None))
            _, changes = departure.depart(view, there, None, Moment(NONE, int(time.time())))
        return self._store.write(*changes.ops())

    def _make(self, key: Key) -> Future[list[int]] | None:
        word = self._store.get(key)
        if word is None:
            return None
        made = home(self._store, orjson.loads(word.value), Moment(NONE, int(time.time())))
        if isinstance(made, Unscheduled):
            self.queue.add_after(key, _LATER)
            return None
        return self._store.write(*made, Delete(key, word.revision))
