"""Workspaces that were made through the API follow their types: labels, and bindings that these maintain.

A controller of the main store. Of what files declare, loading sees to that (loading/workspacetype); here a type that
changes, whoever changed it, is looked for among the types of those workspaces, which are listed by them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import NamedTuple

from apiserver.model.commits import NONE
from apiserver.model.keys import Key
from apiserver.model.storagenames import EXPORTS, TYPES
from apiserver.registry import tree
from apiserver.registry.workspacetypes import TypeRef, extends
from apiserver.storage.protocol import Store
from reconciler.controllers.controller import Controller
from reconciler.controllers.entry import Entry
from reconciler.loading import consumers
from reconciler.loading.moment import Moment
from reconciler.loading.settled import SettledWorld
from reconciler.loading.storedtypes import following


class ToFollow(NamedTuple):
    """A WorkspaceType or an APIExport that changed; or, `key` None, a workspace that may follow from one."""

    key: Key | None
    path: str = ""


class TypeFollowers(Controller[ToFollow]):
    name = "typefollowers"
    version = "1"
    resources = frozenset({TYPES, EXPORTS})

    def __init__(self, store: Store) -> None:
        self._store = store

    def keys_of(self, entry: Entry) -> Iterable[ToFollow]:
        if entry.value is not None and entry.obj.get("spec") != entry.before.get("spec"):
            yield ToFollow(entry.key)

    def reconcile(self, key: ToFollow) -> Future[list[int]] | None:
        if key.key is not None:
            for path in self._followers(key.key):
                self.queue.add(ToFollow(None, path))
            return None
        record = tree.workspace_at(self._store, key.path)
        if record is None or record.leaves or not record.stored:
            return None
        ops = following(self._store, record, Moment(NONE, int(time.time())))
        return self._store.write(*ops, tree.check_there(self._store, record.cluster)) if ops else None

    def _followers(self, changed: Key) -> Iterator[str]:
        there = tree.workspace_of(self._store, changed.cluster)
        if there is None:
            return
        if changed.resource == EXPORTS:
            yield from consumers.of(self._store, there.path)
            return
        find = SettledWorld(self._store).find_type
        for named in tree.types_in_use(self._store):
            if extends(TypeRef.parse(named), (there.path, changed.name), find):
                yield from tree.of_type(self._store, named)
