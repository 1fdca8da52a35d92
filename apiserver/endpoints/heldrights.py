"""Rights elsewhere by which somebody sees part of others: that a watch ends with them.

Made by kube for requests of views (`/services/…`). In an ordinary workspace a watch outlasts the right to it, as in
kube-apiserver; who looks into other people's workspaces does so as long as they may.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from apiserver.auth.rbac import MARKED
from apiserver.model.storagenames import EXPORTS, LOGICAL_CLUSTERS
from apiserver.registry import tree
from apiserver.storage.protocol import Change, View

DECIDING = MARKED | {LOGICAL_CLUSTERS, EXPORTS}
"""Resources whose changes may take rights away: RBAC's, what says who may enter a workspace and all below it, and
how far a provider lets others go with what it offers."""


class HeldRights(NamedTuple):
    """`places`: the logical clusters that give them; `hold`: whether they still do."""

    places: frozenset[str]
    hold: Callable[[], bool]

    @staticmethod
    def of(store: View, deciding: Iterable[str], hold: Callable[[], bool]) -> HeldRights:
        """`deciding`: logical clusters; what they are in decides as well."""
        return HeldRights(frozenset(each for at in deciding for each in tree.lineage(store, at)), hold)

    def follow(self, change: Change) -> bool:
        """Takes notice of a change; False where the rights are gone."""
        return change.key.cluster not in self.places or change.key.resource not in DECIDING or self.hold()
