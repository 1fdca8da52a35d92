"""Which namespaces run on which sync targets, from the decisions that are on record.

Told by the decisions controller of decisions that are durable (and only of those: the syncers act on what stands here),
and by the log of namespaces. Read by the syncers for every change of an object: of a workspace without Placements that
is one look-up.

All of it stands in the store: decisions in rows (standings.py), labels on the namespaces. Memory holds what was
withdrawn of late.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any

from apiserver.model.keys import Key
from apiserver.registry import indexes
from apiserver.registry.objects import Objects
from reconciler.controllers.controller import NO_RESOURCES, Controller
from reconciler.controllers.entry import Entry
from reconciler.controllers.standings import Standing, Standings
from reconciler.plan import placement as plan
from reconciler.plan.selection import selectable, selector_of
from reconciler.plan.syncable import NEVER_NAMESPACES

NAMESPACES = "namespaces"

Object = dict[str, Any]

_PAGE = 1_000


class NamespaceRole(Enum):
    """What a namespace is to a sync target."""

    HERE = "here"
    """Its objects run there."""
    LEAVING = "leaving"
    """A recorded decision moved it away; what is there stays until all is healthy at the new place."""
    WITHDRAWN = "withdrawn"
    """This process saw its Placement being deleted. What it did not see, git tells (syncing/withdrawals.py)."""


Roles = Mapping[str, NamespaceRole]
Listener = Callable[[str, str], None]
"""Told logical cluster and namespace whose roles may have changed."""


_WITHDRAWN = 50_000
"""Namespaces that were withdrawn from a target, and for which that is remembered: of what is older git tells, or nobody
and it is left alone."""


class Bindings(Controller[Key]):
    """By logical cluster. A controller that has nothing to reconcile."""

    name = "bindings"
    resources = frozenset({NAMESPACES, indexes.PLACEMENTS})
    shown = NO_RESOURCES

    def __init__(self, objects: Objects) -> None:
        self.placed = True
        """False: no workspace has a Placement, so whatever changes concerns none."""
        self._objects = objects
        self._standings = Standings(objects.store)
        self._withdrawn: OrderedDict[tuple[str, str], frozenset[str]] = OrderedDict()
        """Logical cluster and namespace → keys of the targets that it was withdrawn from."""
        self._listeners: tuple[Listener, ...] = ()
        self._changing = threading.RLock()

    def on(self, listener: Listener) -> None:
        self._listeners = (*self._listeners, listener)

    def bound(self, cluster: str) -> bool:
        """Whether the workspace has a placement, decided or not."""
        if not self.placed:
            return False
        return bool(self._standings.of(cluster)) or self._objects.store.count(indexes.PLACEMENTS, cluster) > 0

    def roles(self, cluster: str, namespace: str) -> Roles:
        """What the namespace is to each target that it concerns, by key."""
        found = dict.fromkeys(self._withdrawn.get((cluster, namespace), ()), NamespaceRole.WITHDRAWN)
        selecting = self._selecting(cluster, namespace)
        found.update({key: NamespaceRole.LEAVING for s in selecting for key in s.leaving})
        found.update({s.target: NamespaceRole.HERE for s in selecting if s.target})
        return found

    def takes(self, cluster: str, namespace: str, target: str) -> bool:
        """Whether what has no copy on a target yet, of a namespace that is there, gets one."""
        return any(s.target == target and not s.nothing_new for s in self._selecting(cluster, namespace))

    def namespaces(self, cluster: str, placement: str | None = None) -> list[str]:
        """The namespaces that a placement (None: any) selects."""
        standing = self._standings.of(cluster)
        chosen = standing.values() if placement is None else [standing[placement]] if placement in standing else []
        return self._touched(cluster, *chosen)

    def standings(self, cluster: str) -> Mapping[str, Standing]:
        return self._standings.of(cluster)

    def underway(self, cluster: str, namespace: str) -> bool:
        """Whether a Placement that selects the namespace is to be decided, or its decision to be handed on."""
        labels = self._labels(cluster, namespace)
        standing = self._standings.of(cluster)
        for obj in self._objects.list(indexes.PLACEMENTS, cluster) if labels is not None else ():
            known = standing.get(obj["metadata"]["name"], Standing())
            new = "phase" not in (obj.get("status") or {}) or plan.recorded(obj)[0] != known.target
            if new and selector_of(obj).matches(labels):
                return True
        return False

    def everywhere(self) -> Iterator[Key]:
        """The Placements that have a decision which is handed on. Reads all of them."""
        return self._standings.all()

    def leaving(self) -> Iterator[Key]:
        """The Placements that are leaving a target."""
        return iter({found.key for found in self._objects.store.indexed(indexes.PLACED, indexes.leaves(""))})

    def around(self, target: str) -> Iterator[str]:
        """The logical clusters of which something runs on a target, or is leaving it; one may come twice."""
        last = ""
        for term in (indexes.runs(target), indexes.leaves(target)):
            after = None
            while page := self._objects.store.indexed(indexes.PLACED, term, whole=True, after=after, limit=_PAGE):
                for found in page:
                    if found.key.cluster != last:
                        yield found.key.cluster
                    last = found.key.cluster
                after = page[-1]

    def set(self, cluster: str, placement: str, standing: Standing) -> None:
        """A decision became durable, or its Placement selects other namespaces."""
        with self._changing:
            before = self._standings.of(cluster).get(placement)
            if before == standing:
                return
            self._standings.put(cluster, placement, standing)
            touched = self._touched(cluster, *([before] if before is not None else []), standing)
            for namespace in touched:
                if (cluster, namespace) in self._withdrawn:
                    self._withdraw(cluster, namespace, self._withdrawn[cluster, namespace])
        self._tell(cluster, touched)

    def withdraw(self, cluster: str, placement: str, *, explained: bool) -> None:
        """The Placement is gone. `explained`: a commit (or a client of the API) deleted it, so its copies go, too."""
        with self._changing:
            before = self._standings.of(cluster).get(placement)
            if before is None:
                return
            self._standings.put(cluster, placement, None)
            touched = self._touched(cluster, before)
            keys = frozenset({before.target, *before.leaving}) - {""}
            for namespace in touched if explained else ():
                self._withdraw(cluster, namespace, keys | self._withdrawn.get((cluster, namespace), frozenset()))
        self._tell(cluster, touched)

    def _withdraw(self, cluster: str, namespace: str, keys: frozenset[str]) -> None:
        """Withdrawn from these targets, as far as they have no other role."""
        self._withdrawn.pop((cluster, namespace), None)
        left = keys - self.roles(cluster, namespace).keys()
        if left:
            self._withdrawn[cluster, namespace] = left
            if len(self._withdrawn) > _WITHDRAWN:
                self._withdrawn.popitem(last=False)

    def _selecting(self, cluster: str, namespace: str) -> list[Standing]:
        """The decisions that concern a namespace that is there."""
        standing = self._standings.of(cluster)
        labels = self._labels(cluster, namespace) if standing else None
        return [s for s in standing.values() if s.selector.matches(labels)] if labels is not None else []

    def _touched(self, cluster: str, *standings: Standing) -> list[str]:
        if not standings:
            return []
        there = (selectable(obj) for obj in self._objects.list(NAMESPACES, cluster))
        selected = {name for name, labels in there if any(s.selector.matches(labels) for s in standings)}
        return sorted(selected - NEVER_NAMESPACES)

    def _labels(self, cluster: str, namespace: str) -> Mapping[str, str] | None:
        """As they are now; None where there is no such namespace, or none that is ever placed."""
        obj = self._objects.get(Key(NAMESPACES, cluster, "", namespace)) if namespace not in NEVER_NAMESPACES else None
        return selectable(obj)[1] if obj is not None else None

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        cluster, name = entry.key.cluster, entry.key.name
        if entry.key.resource == indexes.PLACEMENTS:
            self.placed = True
        elif self.bound(cluster) and name not in NEVER_NAMESPACES:
            before = selectable(entry.before)[1] if entry.previous is not None else None
            if (selectable(entry.obj)[1] if entry.value is not None else None) != before:
                self._tell(cluster, [name])
        return ()

    def begin(self) -> None:
        self._standings.begin()
        self.placed = self._objects.store.count(indexes.PLACEMENTS) > 0 or self._standings.any()

    def _tell(self, cluster: str, namespaces: Iterable[str]) -> None:
        for namespace in namespaces:
            for listener in self._listeners:
                listener(cluster, namespace)
