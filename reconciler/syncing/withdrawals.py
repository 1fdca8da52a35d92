"""Namespaces that no target is to run any more, or another one: whether what is here of them is to go.

Called by a syncer for a namespace of ours that has no place on its target. Reasons are on record: git tells that the
commit which the inventory names had Placements place it here and that the served one has not, or this process saw its
Placement go. Where it runs elsewhere by now, it goes when all is healthy there. What nothing explains is left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from reconciler.controllers.bindings import NamespaceRole
from reconciler.syncing.homes import Home
from reconciler.syncing.site import TargetSite
from reconciler.syncing.upstream import Upstream

Settled = Callable[[str, str], bool]
"""settled(logical cluster, namespace): whether all targets that are to run it do so, and are healthy."""


class WithdrawalVerdict(Enum):
    STAYS = "stays"
    """Nothing explains it."""
    WAITS = "waits"
    """It is to go as soon as all is healthy elsewhere."""
    GOES = "goes"


class Withdrawals:
    def __init__(self, site: TargetSite, upstream: Upstream, settled: Settled) -> None:
        self._site, self._upstream, self._settled = site, upstream, settled

    def of(self, cluster: str, namespace: str, home: Home) -> WithdrawalVerdict:
        """Of a namespace that has the role WITHDRAWN on the target, or none."""
        role = self._upstream.role(self._site.key, cluster, namespace)
        if role is not NamespaceRole.WITHDRAWN and (role is not None or not self._explained(namespace, home)):
            return WithdrawalVerdict.STAYS
        return WithdrawalVerdict.GOES if self._settled(cluster, namespace) else WithdrawalVerdict.WAITS

    def _explained(self, namespace: str, home: Home) -> bool:
        held = self._site.inventory(home.name)
        if held is None or not held.commit or not self._upstream.loaded():
            return False
        return self._upstream.past.withdrawn(held.workspace, held.commit, namespace, held.placements)
