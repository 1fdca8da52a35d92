"""Notices that something has gone which a workspace may have waited for, and asks the loader to judge it again.

A controller of the main store alone. What may be waited for is a definition (its names are free, or it may be declared
anew), and an object that git says again while it is on its way out: it is made anew once it has gone.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future

from apiserver.model import marks
from apiserver.model.keys import Key
from apiserver.registry import tree
from apiserver.registry.catalog import BINDINGS, CRDS
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.protocol import Store
from reconciler.controllers.controller import EVERYTHING, Controller
from reconciler.controllers.entry import Entry
from reconciler.loading import awaited

_DYING = b'"deletionTimestamp"'
_DECLARED = f'"{marks.SOURCE_PATH}"'.encode()


class Awaited(Controller[Key]):
    """By the key of what went."""

    name = "awaited"
    version = "1"
    resources = EVERYTHING
    shown = frozenset()

    def __init__(self, store: Store) -> None:
        self._store = store

    def begin(self) -> None:
        """What went while nobody looked is in no log: whoever is held may have waited for it."""
        for path in tree.held(self._store):
            record = tree.workspace_at(self._store, path)
            if record is not None:
                self.queue.add(Key(CRDS, record.cluster, "", ""))

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        if entry.value is None and (entry.key.resource in (CRDS, BINDINGS) or _is_declared_again(entry.previous)):
            yield entry.key

    def reconcile(self, key: Key) -> Future[list[int]] | None:
        record = tree.workspace_of(self._store, key.cluster)
        if record is None or (key.resource in (CRDS, BINDINGS) and not self._waits(record)):
            return None
        return self._store.write(awaited.note(key.cluster))

    def _waits(self, record: WorkspaceRecord) -> bool:
        said = tree.summary(self._store, record.path)
        return bool(record.errors or said.get("waiting") or said.get("ending"))


def _is_declared_again(value: bytes | None) -> bool:
    """Of what a commit takes away nobody keeps the file's name."""
    return value is not None and _DYING in value and _DECLARED in value
