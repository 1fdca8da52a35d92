"""Which namespaces run on which sync targets, from the decisions that are on record.

Fed by the placements controller with decisions that are durable (and only with those: the syncers act on what stands
here) and by the log with the namespaces of workspaces that have placements. Read by the syncers for every change
of an object: two dictionary look-ups, however many workspaces there are.

Memory holds, for each workspace that has Placements and no other, its decisions and its namespaces' labels: that a
decision is durable is known to this process alone, so a start looks at every Placement and hands each on anew.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from apiserver.model.keys import Key
from apiserver.model.selectors import NOTHING, LabelSelector
from apiserver.registry.objects import Objects
from reconciler.controllers.controller import NO_RESOURCES, Controller
from reconciler.controllers.entry import Entry
from reconciler.plan.selection import selectable
from reconciler.plan.syncable import NEVER_NAMESPACES

NAMESPACES = "namespaces"

Object = dict[str, Any]


class Role(Enum):
    """What a namespace is to a sync target."""

    HERE = "here"
    """Its objects run there."""
    LEAVING = "leaving"
    """A recorded decision moved it away; what is there stays until all is healthy at the new place."""
    WITHDRAWN = "withdrawn"
    """This process saw its Placement being deleted. What it did not see, git tells (syncing/withdrawals.py)."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A durable decision. `target`: key of the sync target; `leaving`: keys of those moved away from. `nothing_new`:
    what has no copy on the target gets none."""

    target: str = ""
    leaving: tuple[str, ...] = ()
    selector: LabelSelector = NOTHING
    nothing_new: bool = False


Roles = Mapping[str, Role]
Listener = Callable[[str, str], None]
"""Told logical cluster and namespace whose roles may have changed."""


@dataclass(slots=True)
class _Workspace:
    standing: dict[str, Standing] = field(default_factory=dict)
    labels: dict[str, Mapping[str, str]] = field(default_factory=dict)
    withdrawn: set[tuple[str, str]] = field(default_factory=set)


class Bindings(Controller[Key]):
    """By logical cluster; only those with placements are held. A controller that has nothing to reconcile."""

    name = "bindings"
    resources = frozenset({NAMESPACES})
    shown = NO_RESOURCES

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._workspaces: dict[str, _Workspace] = {}
        self._listeners: tuple[Listener, ...] = ()
        self._lock = threading.RLock()

    def on(self, listener: Listener) -> None:
        self._listeners = (*self._listeners, listener)

    def bound(self, cluster: str) -> bool:
        """Whether the workspace has (or had) a placement."""
        return cluster in self._workspaces

    def roles(self, cluster: str, namespace: str) -> Roles:
        """What the namespace is to each target that it concerns, by key."""
        if cluster not in self._workspaces:
            return {}
        with self._lock:
            workspace = self._workspaces[cluster]
            found = {key: Role.WITHDRAWN for key, name in workspace.withdrawn if name == namespace}
            labels = workspace.labels.get(namespace)
            if labels is None:
                return found
            selecting = [s for s in workspace.standing.values() if s.selector.matches(labels)]
            found.update({key: Role.LEAVING for s in selecting for key in s.leaving})
            found.update({s.target: Role.HERE for s in selecting if s.target})
            return found

    def takes(self, cluster: str, namespace: str, target: str) -> bool:
        """Whether what has no copy on a target yet, of a namespace that is there, gets one."""
        with self._lock:
            workspace = self._workspaces.get(cluster)
            labels = workspace.labels.get(namespace) if workspace is not None else None
            if workspace is None or labels is None:
                return False
            here = (s for s in workspace.standing.values() if s.target == target and not s.nothing_new)
            return any(standing.selector.matches(labels) for standing in here)

    def namespaces(self, cluster: str, placement: str | None = None) -> list[str]:
        """The namespaces that a placement (None: any) selects."""
        with self._lock:
            workspace = self._workspaces.get(cluster)
            if workspace is None:
                return []
            standing = workspace.standing
            chosen = (
                list(standing.values()) if placement is None else [standing[placement]] if placement in standing else []
            )
            return sorted(
                n for n, labels in workspace.labels.items() if any(s.selector.matches(labels) for s in chosen)
            )

    def standings(self, cluster: str) -> dict[str, Standing]:
        with self._lock:
            workspace = self._workspaces.get(cluster)
            return dict(workspace.standing) if workspace else {}

    def clusters(self) -> list[str]:
        with self._lock:
            return list(self._workspaces)

    def set(self, cluster: str, placement: str, standing: Standing) -> None:
        """A decision became durable, or its Placement selects other namespaces."""
        with self._lock:
            workspace = self._workspaces.get(cluster)
            if workspace is None:
                workspace = self._workspaces[cluster] = _Workspace()
                workspace.labels = self._labels(cluster)
            before = workspace.standing.get(placement)
            if before == standing:
                return
            workspace.standing[placement] = standing
            touched = self._touched(workspace, before, standing)
            workspace.withdrawn = {
                (k, n) for k, n in workspace.withdrawn if self.roles(cluster, n).get(k) is Role.WITHDRAWN
            }
        self._tell(cluster, touched)

    def withdraw(self, cluster: str, placement: str, *, explained: bool) -> None:
        """The Placement is gone. `explained`: a commit (or a client of the API) deleted it, so its copies go, too."""
        with self._lock:
            workspace = self._workspaces.get(cluster)
            before = workspace.standing.pop(placement, None) if workspace else None
            if workspace is None or before is None:
                return
            touched = self._touched(workspace, before)
            if explained:
                keys = {before.target, *before.leaving} - {""}
                workspace.withdrawn |= {(k, n) for n in touched for k in keys if k not in self.roles(cluster, n)}
        self._tell(cluster, touched)

    @staticmethod
    def _touched(workspace: _Workspace, *standings: Standing | None) -> list[str]:
        selectors = [s.selector for s in standings if s is not None]
        return [n for n, labels in workspace.labels.items() if any(s.matches(labels) for s in selectors)]

    def _labels(self, cluster: str) -> dict[str, Mapping[str, str]]:
        found = (selectable(obj) for obj in self._objects.list(NAMESPACES, cluster))
        return {name: labels for name, labels in found if name not in NEVER_NAMESPACES}

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        cluster, name = entry.key.cluster, entry.key.name
        if cluster in self._workspaces and name not in NEVER_NAMESPACES:
            self._look(cluster, name)
        return ()

    def _look(self, cluster: str, name: str) -> None:
        obj = self._objects.get(Key(NAMESPACES, cluster, "", name))
        with self._lock:
            labels = self._workspaces[cluster].labels
            before = labels.get(name)
            if obj is None:
                labels.pop(name, None)
            else:
                labels[name] = selectable(obj)[1]
            same = labels.get(name) == before
        if not same:
            self._tell(cluster, [name])

    def begin(self) -> None:
        for cluster in self.clusters():
            labels = self._labels(cluster)
            with self._lock:
                workspace = self._workspaces[cluster]
                touched = set(labels) ^ set(workspace.labels)
                touched |= {n for n in labels if labels[n] != workspace.labels.get(n)}
                workspace.labels = labels
            self._tell(cluster, touched)

    def _tell(self, cluster: str, namespaces: Iterable[str]) -> None:
        for namespace in namespaces:
            for listener in self._listeners:
                listener(cluster, namespace)
