"""ClusterRoles with an aggregation rule: their rules are those of the ClusterRoles that it selects.

Who may do what is decided without this loop (apiserver/auth/policy.py follows the selectors itself); it writes the
rules down for clients that read them. One work item a cluster: its ClusterRoles are judged together, from one list.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from apiserver.model import selectors
from apiserver.model.keys import Key
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Change
from reconciler.controllers.runtime import Informer, Loop, WorkQueue
from reconciler.controllers.served import Serves, records

ROLES = "clusterroles.rbac.authorization.k8s.io"

Object = dict[str, Any]


class Aggregation:
    def __init__(self, objects: Objects, informer: Informer, serves: Serves) -> None:
        self._objects, self._serves = objects, serves
        self._queue: WorkQueue[str] = WorkQueue()
        self._loop = Loop("aggregation", self._queue, self._reconcile)
        informer.on(frozenset({ROLES}), self._role_changed)
        informer.on_gap(self.load)

    def load(self) -> None:
        for record in records(self._objects.store, ROLES, self._serves):
            self._queue.add(record.key.cluster)

    def start(self) -> None:
        self._loop.start()

    def stop(self) -> None:
        self._loop.stop()

    def _role_changed(self, change: Change) -> None:
        if self._serves(change.key.cluster):
            self._queue.add(change.key.cluster)

    def _reconcile(self, cluster: str) -> None:
        """Roles may be parts of parts: what one write makes stale, the change that it is brings back here."""
        roles = list(self._objects.list(ROLES, cluster))
        for role in roles:
            if role.get("aggregationRule") is None or role["metadata"].get("deletionTimestamp"):
                continue
            rules = aggregated(role, roles)
            if rules != (role.get("rules") or []):
                key = Key(ROLES, cluster, "", role["metadata"]["name"])
                self._objects.update(key, lambda found, rules=rules: {**found, "rules": rules})  # type: ignore[misc]


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
