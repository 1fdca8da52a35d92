"""Rights elsewhere by which somebody sees part of others: that a watch ends with them.

Made by kube for requests of views (`/services/…`). In an ordinary workspace a watch outlasts the right to it, as in
kube-apiserver; who looks into other people's workspaces does so as long as they may.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from apiserver.auth.rbac import MARKED
from apiserver.model.storagenames import LOGICAL_CLUSTERS
from apiserver.storage.protocol import Change

DECIDING = MARKED | {LOGICAL_CLUSTERS}
"""Resources whose changes may take rights away: RBAC's, and what says who may enter a workspace at all."""


class HeldRights(NamedTuple):
    """`home`: the logical cluster that gives them; `hold`: whether it still does."""

    home: str
    hold: Callable[[], bool]

    def follow(self, change: Change) -> bool:
        """Takes notice of a change; False where the rights are gone."""
        return change.key.cluster != self.home or change.key.resource not in DECIDING or self.hold()
