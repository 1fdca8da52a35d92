"""ClusterRoles with an aggregation rule: their rules are those of the ClusterRoles that it selects.

Who may do what is decided without this loop (apiserver/auth/policy.py follows the selectors itself); it writes the
rules down for clients that read them. One work item a cluster: its ClusterRoles are judged together, from one list.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from apiserver.model import selectors
from apiserver.model.keys import Key
from apiserver.registry.indexes import AGGREGATED
from reconciler.controllers.bycluster import ByCluster
from reconciler.controllers.entry import Entry

ROLES = "clusterroles.rbac.authorization.k8s.io"

Object = dict[str, Any]


class Aggregation(ByCluster):
    name = "aggregation"
    version = "2"
    resources = frozenset({ROLES})

    def keys_of(self, entry: Entry) -> Iterable[str]:
        """Where there is no such role, which an index tells, nobody asks."""
        whole = any(value is not None and AGGREGATED.hint in value for value in (entry.value, entry.previous))
        return super().keys_of(entry) if whole or (not entry.shown and self._has_any(entry.key.cluster)) else ()

    def _has_any(self, cluster: str) -> bool:
        return bool(self._objects.store.indexed(AGGREGATED, cluster, limit=1))

    def reconcile(self, key: str) -> None:
        """Roles may be parts of parts: what one write makes stale, the change that it is brings back here."""
        roles = list(self._objects.list(ROLES, key))
        for role in roles:
            if role.get("aggregationRule") is None or role["metadata"].get("deletionTimestamp"):
                continue
            rules = aggregated(role, roles)
            if rules != (role.get("rules") or []):
                whole = Key(ROLES, key, "", role["metadata"]["name"])
                self._objects.update(whole, lambda found, rules=rules: {**found, "rules": rules})  # type: ignore[misc]


def aggregated(role: Object, roles: Iterable[Object]) -> list[Object]:
    """The rules of all roles that a role's aggregation rule selects, by their names, each rule once."""
    wanted = [selectors.from_object(s) for s in role["aggregationRule"].get("clusterRoleSelectors") or ()]
    found: list[Object] = []
    for part in sorted(roles, key=lambda r: str(r["metadata"]["name"])):
        labels = part["metadata"].get("labels") or {}
        if part["metadata"]["name"] == role["metadata"]["name"] or not any(s.matches(labels) for s in wanted):
            continue
        found += [rule for rule in part.get("rules") or () if rule not in found]
    return found
