"""Notices that something has gone which a workspace may have waited for, and asks the loader to judge it again.

A controller of the main store alone. What may be waited for is a definition (its names are free, or it may be declared
anew), an object that git says again while it is on its way out (it is made anew once it has gone), and whatever keeps a
workspace that leaves.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future

from apiserver.model import marks, paths
from apiserver.model.keys import Internal, Key
from apiserver.model.storagenames import BINDINGS, CRDS, LOGICAL_CLUSTERS, WORKSPACES
from apiserver.registry import tree
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.protocol import Store
from reconciler.controllers.controller import EVERYTHING, NO_RESOURCES, Controller
from reconciler.controllers.entry import Entry
from reconciler.loading import awaited

_DYING = b'"deletionTimestamp"'
_DECLARED = f'"{marks.SOURCE_PATH}"'.encode()
_OWNED = b'"owner":{'
"""Says that a Workspace stands for a LogicalCluster."""
_REMOVED = marks.as_stored(marks.REMOVED)
"""Of what a commit takes away nobody keeps the file's name: who has one was said again."""
_SAID_AGAIN = Internal.AWAITED
"""Stands for the resource of a key that is about a whole workspace."""


class Awaited(Controller[Key]):
    """By the key of what went, or of what stands for a workspace that lost a finalizer: its Workspace, a home's
    LogicalCluster."""

    name = "awaited"
    version = "1"
    resources = EVERYTHING
    shown = beyond = NO_RESOURCES

    def __init__(self, store: Store) -> None:
        self._store = store

    def begin(self) -> None:
        """What went while nobody looked is in no log: whoever is held may have waited for it."""
        for path in (*tree.held(self._store), *tree.leaving(self._store)):
            record = tree.workspace_at(self._store, path)
            if record is not None:
                self.queue.add(Key(CRDS, record.cluster, "", ""))

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        key, value, previous = entry.key, entry.value, entry.previous or b""
        if value is not None:
            is_above = key.resource == WORKSPACES and _REMOVED in value
            is_home = key.resource == LOGICAL_CLUSTERS and _OWNED not in value
            if (is_above or is_home) and _DYING in value:
                yield key
        elif key.resource in (CRDS, BINDINGS):
            yield key
        elif _DYING in previous and _DECLARED in previous:
            yield Key(_SAID_AGAIN, key.cluster, "", "")
        elif _DYING in previous and _REMOVED in previous:
            yield key

    def reconcile(self, key: Key) -> Future[list[int]] | None:
        record = self._concerned(key)
        if record is None or not (record.leaves or key.resource == _SAID_AGAIN or self._waits(record)):
            return None
        return self._store.write(awaited.note(record))

    def _concerned(self, key: Key) -> WorkspaceRecord | None:
        """The workspace that may have waited. A Workspace may be all that is left of one that leaves, or the last that
        kept its parent."""
        record = tree.workspace_of(self._store, key.cluster)
        if record is None or key.resource != WORKSPACES:
            return record
        below = tree.workspace_at(self._store, paths.join(record.path, key.name))
        return below if below is not None and below.leaves else record

    def _waits(self, record: WorkspaceRecord) -> bool:
        said = tree.summary(self._store, record.path)
        return bool(record.errors or said.get("waiting") or said.get("ending"))
