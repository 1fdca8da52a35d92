"""Placements by what they depend on, so that a change wakes only those concerned; and how many each target has.

Asked by the placements controller. All of it is looked up in the store, in an index that is kept with the Placements
(registry/indexes), so nothing is held, and a fleet without Placements costs one look-up an entry.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from apiserver.model.identity import sync_target_key
from apiserver.model.keys import Key
from apiserver.model.storagenames import SYNC_TARGETS
from apiserver.registry import indexes, tree
from apiserver.registry.indexes import PLACEMENTS
from apiserver.storage.protocol import Store


class PlacementIndex:
    def __init__(self, store: Store) -> None:
        self._store = store

    def of(self, cluster: str) -> list[Key]:
        """Those in a logical cluster."""
        if not self._store.count(PLACEMENTS) or not self._store.count(PLACEMENTS, cluster):
            return []
        return [record.key for record in self._store.scan(PLACEMENTS, cluster, count=False).records]

    def looking(self, path: str, cluster: str) -> Iterable[Key]:
        """Those whose Locations are, or may be, those of the workspace at `path`, which is that logical cluster."""
        if not self._store.count(PLACEMENTS):
            return ()
        return {*self._term(indexes.looks(path)), *self.of(cluster)}

    def on(self, target: str) -> Iterable[Key]:
        """Those that run on a sync target, or are leaving it, by its key."""
        return {*self._term(indexes.runs(target)), *self._term(indexes.leaves(target))}

    def around(self, cluster: str) -> Collection[Key]:
        """Those that depend on the Locations of a logical cluster: they look there, or run on a sync target of it."""
        if not self._store.count(PLACEMENTS):
            return ()
        workspace = tree.workspace_of(self._store, cluster)
        found = {*self.looking(workspace.path if workspace is not None else "", cluster)}
        for record in self._store.scan(SYNC_TARGETS, cluster, count=False).records:
            found.update(self.on(sync_target_key(cluster, record.key.name)))
        return found

    def load(self, targets: Iterable[str], current: str) -> Mapping[str, int]:
        """Placements on each of these targets, by key, not counting one that runs on `current`."""
        return {key: self._store.tally(indexes.PLACED, indexes.runs(key)) - (key == current) for key in targets}

    def _term(self, term: str) -> list[Key]:
        return [found.key for found in self._store.indexed(indexes.PLACED, term, whole=True)]
