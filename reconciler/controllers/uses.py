"""Which workspaces may use a Location: those to whom RBAC of the Location's workspace gives the verb `use` on it.

Asked by the placements controller, which is told through `concerned` whom a change of RBAC concerns: a workspace's
grants are compiled once a change, and only those whose grants of `use` are others now are looked at again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

from apiserver.auth.policy import Holders
from apiserver.auth.rbac import MARKED, Authorizer
from apiserver.auth.user import Attributes
from apiserver.auth.workspaces import BELOW_PREFIX, EVERY, USER_PREFIX, as_user
from apiserver.registry import tree
from apiserver.storage.protocol import Store

RBAC = MARKED
"""Storage resources whose changes may change who uses what."""

_KEPT = 1_024
"""Workspaces with Locations of which is known who may use them: of others everybody is looked at."""
_USE = Attributes("use", "scheduling.kcp.io", "v1alpha1", "locations")


class Uses:
    """Over the fleet's store. Safe from every thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._authorizer = Authorizer(store)
        self._known: dict[str, Holders] = {}
        self._lock = threading.Lock()

    def may_use(self, cluster: str, location: str, path: str) -> bool:
        """Whether the workspace at `path` may use that Location of the logical cluster `cluster`. A Location serves its
        own workspace in any case; `access` is not asked for, since nobody enters."""
        if cluster not in self._known:
            with self._lock:
                # Before the answer is read, so that no change comes between the two unseen.
                if cluster not in self._known:
                    self._keep(cluster, self._authorizer.holders(cluster, _USE))
        asked = replace(_USE, name=location)
        if self._authorizer.authorize(cluster, as_user(path), asked, deep=True).allowed:
            return True
        own = tree.workspace_at(self._store, path)
        return own is not None and own.cluster == cluster

    def concerned(self, cluster: str) -> Iterator[str] | None:
        """After a change of RBAC in `cluster`: the paths of the workspaces that may use something there now and might
        not before, or the other way round; None: any, also where nobody has asked before. Each may come twice."""
        with self._lock:
            before = self._known.get(cluster)
            now = self._authorizer.holders(cluster, _USE)
            self._keep(cluster, now)
            if before is None:
                return None
        changed = {subject for subject in before.keys() | now.keys() if before.get(subject) != now.get(subject)}
        return None if ("Group", EVERY) in changed else self._paths(changed)

    def forget(self) -> None:
        """Changes were missed: everybody asks anew."""
        with self._lock:
            self._known = {}

    def _keep(self, cluster: str, holders: Holders) -> None:
        if len(self._known) >= _KEPT:
            self._known.clear()
        self._known[cluster] = holders

    def _paths(self, subjects: set[tuple[str, str]]) -> Iterator[str]:
        for kind, name in sorted(subjects):
            if kind == "User" and name.startswith(USER_PREFIX):
                yield name.removeprefix(USER_PREFIX)
            elif kind == "Group" and name.startswith(BELOW_PREFIX):
                yield from tree.below(self._store, name.removeprefix(BELOW_PREFIX))
