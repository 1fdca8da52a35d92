"""Remove what should not be on a sync target any more, and only for a reason that is on record.

Reasons: a deletion upstream that was seen as such, or that git tells (the inventory's commit declared the object, the
served one does not); its workspace withdrew the namespace (withdrawals.py); a recorded decision moved it and it is
healthy at its new place. What nothing explains is noted as a leftover and never touched.
"""

from __future__ import annotations

import time
from enum import Enum
from typing import Any

from apiserver.model.kinds import GroupResource
from apiserver.registry.builtins.catalogue import resources_having
from reconciler.controllers.bindings import NamespaceRole
from reconciler.plan.syncable import made_in_all
from reconciler.syncing import client
from reconciler.syncing.errors import TargetRefused, Unseen
from reconciler.syncing.homes import Home
from reconciler.syncing.inventory import PARENT_NAME, applyset_id
from reconciler.syncing.live import Live
from reconciler.syncing.render import CLUSTER_LABEL
from reconciler.syncing.site import NAMESPACES, TargetSite
from reconciler.syncing.upstream import Item, Upstream
from reconciler.syncing.withdrawals import Withdrawals, WithdrawalVerdict

Object = dict[str, Any]

_FORBIDDEN = 403
_MADE_ALONE = resources_having(lambda kind: kind.made_alone)


class Pruned(Enum):
    """What became of an object on the target that is not to be applied."""

    DONE = "done"
    """It is deleted, or in order."""
    WITHDRAWN = "withdrawn"
    """It is deleted, since its namespace is withdrawn."""
    WAITS = "waits"
    """Its namespace is withdrawn, and not healthy yet where it runs now."""
    UNEXPLAINED = "unexplained"


class Pruner:
    def __init__(self, site: TargetSite, upstream: Upstream, withdrawals: Withdrawals) -> None:
        self._site, self._upstream, self._withdrawals = site, upstream, withdrawals
        self._empty: dict[str, float] = {}

    def consider(self, item: Item, live: Live, obj: Object | None, *, known: bool) -> Pruned:
        """Delete an object on the target that is not to be applied, if there is a reason.

        `obj`: its upstream object; `known`: whether its absence is certain (the workspace is served, and serves the
        kind, or it is gone).
        """
        home = self._site.homes.get(item.cluster, item.namespace)
        if home is None or live.deleting:
            return Pruned.DONE
        role = self._upstream.role(self._site.key, item.cluster, item.namespace)
        verdict = WithdrawalVerdict.STAYS
        if live.part_of == applyset_id(home.name):
            verdict = self._withdrawals.of(item.cluster, item.namespace, home)
            if verdict is WithdrawalVerdict.GOES or self._explained(item, obj, role, home, known=known):
                version = self._site.client.discovery.versions[item.kind][0]
                self._site.client.delete(client.path(item.kind, version, home.name, item.name), live.uid)
                return Pruned.WITHDRAWN if verdict is WithdrawalVerdict.GOES else Pruned.DONE
        if verdict is WithdrawalVerdict.WAITS:
            return Pruned.WAITS
        fine = role is NamespaceRole.LEAVING or (obj is not None and role is NamespaceRole.HERE)
        return Pruned.DONE if fine else Pruned.UNEXPLAINED

    def _explained(
        self, item: Item, obj: Object | None, role: NamespaceRole | None, home: Home, *, known: bool
    ) -> bool:
        ledger = self._site.ledger
        if role is NamespaceRole.LEAVING and (item.cluster, item.namespace) in ledger.retiring:
            return True
        if obj is not None:
            return "deletionTimestamp" in obj["metadata"]
        if item in ledger.explained:
            return True
        held = self._site.inventory(home.name)
        if not known or held is None or not held.commit or not self._upstream.loaded():
            return False
        return self._upstream.past.declared(held.workspace, held.commit, item)

    def empty(self, cluster: str, namespace: str, *, wanted: bool) -> float | None:
        """Delete a downstream namespace that has been empty for the grace period. `wanted`: objects are to come.

        Returns the seconds after which to look again, None if there is nothing to wait for.
        """
        home = self._site.homes.get(cluster, namespace)
        if home is None or home.terminating:
            return None
        if wanted or self._site.members(home.name):
            self._empty.pop(home.name, None)
            return None
        role = self._upstream.role(self._site.key, cluster, namespace)
        gone = role is NamespaceRole.LEAVING or self._withdrawals.of(cluster, namespace, home) is WithdrawalVerdict.GOES
        grace = 0.0 if gone else self._site.settings.grace
        wait = self._empty.setdefault(home.name, time.monotonic()) + grace - time.monotonic()
        if wait > 0:
            return wait
        if self._strangers(home):
            return None
        self._site.client.delete(client.path(NAMESPACES, "v1", name=home.name), home.uid)
        self._empty.pop(home.name, None)
        return None

    def _strangers(self, home: Home) -> bool:
        """Whether anyone else keeps something in the namespace: then it stays. Raises Unseen, and it stays too."""
        for kind, versions in self._site.client.discovery.versions.items():
            if kind in _MADE_ALONE:
                continue
            pages = self._site.client.list(client.path(kind, versions[0], home.name))
            try:
                if any(not self._expected(kind, item["metadata"]) for page in pages for item in page.items):
                    return True
            except TargetRefused as error:
                if error.code == _FORBIDDEN:
                    raise Unseen(home.name, error) from error
                raise
        return False

    def _expected(self, kind: GroupResource, metadata: Object) -> bool:
        name = metadata["name"]
        ours = (metadata.get("labels") or {}).get(CLUSTER_LABEL) == self._site.key and name == PARENT_NAME
        dying = "deletionTimestamp" in metadata
        return ours or dying or bool(metadata.get("ownerReferences")) or made_in_all(kind, name)
