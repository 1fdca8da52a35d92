"""Moves: remove the copies at the old place once everything is healthy at the new one, then forget the old place.

One work item a Placement that is leaving a target. A target that does not answer is waited for: its copies go when it
is back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from apiserver.model.keys import Key
from reconciler.controllers.bindings import Bindings, NamespaceRole
from reconciler.controllers.controller import Controller
from reconciler.controllers.placements import PLACEMENTS
from reconciler.syncing.target import Syncer


class Moves(Controller[Key]):
    """`syncers`: those connected, by key of the target. `left(placement, key)`: told when nothing is left there."""

    name = "moves"
    AGAIN_SECONDS = 1.0

    def __init__(
        self, bindings: Bindings, syncers: Callable[[], Mapping[str, Syncer]], left: Callable[[Key, str], None]
    ) -> None:
        self._bindings, self._syncers, self._left = bindings, syncers, left

    def begin(self) -> None:
        for key in self._bindings.leaving():
            self.queue.add(key)

    def look(self, cluster: str) -> None:
        """Something changed that the moves of this workspace's placements may wait for."""
        for name, standing in self._bindings.standings(cluster).items():
            if standing.leaving:
                self.queue.add(Key(PLACEMENTS, cluster, "", name))

    def reconcile(self, key: Key) -> None:
        standing = self._bindings.standings(key.cluster).get(key.name)
        if standing is None or not standing.leaving:
            return
        syncers, namespaces = self._syncers(), self._bindings.namespaces(key.cluster, key.name)
        new = syncers.get(standing.target)
        if new is None or not all(new.settled(key.cluster, n) for n in namespaces):
            self.queue.add_after(key, self.AGAIN_SECONDS)
            return
        for target in standing.leaving:
            old = syncers.get(target)
            # A namespace that another Placement still keeps there is not this one's to remove.
            mine = [n for n in namespaces if self._bindings.roles(key.cluster, n).get(target) is NamespaceRole.LEAVING]
            # Every namespace is begun with; `all` alone would stop at the first that is not done.
            if old is not None and False not in {n: old.retire(key.cluster, n) for n in mine}.values():
                self._left(key, target)
                for namespace in mine:
                    old.keep(key.cluster, namespace)
            else:
                self.queue.add_after(key, self.AGAIN_SECONDS)
