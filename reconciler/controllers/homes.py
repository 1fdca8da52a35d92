"""Home workspaces, which are made for whoever asks for one.

A controller of the main store. A request that asks leaves word in the store (apiserver/endpoints/homeworkspaces); it is
taken away with what makes the home.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import Future

import orjson

from apiserver.model.commits import NONE
from apiserver.model.keys import Internal, Key
from apiserver.storage.protocol import Delete, Store
from reconciler.controllers.controller import Controller
from reconciler.controllers.entry import Entry
from reconciler.loading.moment import Moment
from reconciler.loading.storedworkspaces import Unscheduled, home

_LATER = 10.0
"""Seconds until the type is looked for again, where it cannot be had."""


class HomeWorkspaces(Controller[Key]):
    """By the key of what was left."""

    name = "homes"
    version = "1"
    resources = frozenset({Internal.HOME})

    def __init__(self, store: Store) -> None:
        self._store = store

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        if entry.value is not None:
            yield entry.key

    def reconcile(self, key: Key) -> Future[list[int]] | None:
        word = self._store.get(key)
        if word is None:
            return None
        made = home(self._store, orjson.loads(word.value), Moment(NONE, int(time.time())))
        if isinstance(made, Unscheduled):
            self.queue.add_after(key, _LATER)
            return None
        return self._store.write(*made, Delete(key, word.revision))
