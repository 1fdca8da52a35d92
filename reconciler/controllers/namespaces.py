"""Namespaces that a Placement selects: the annotation and the condition that say so.

Only those are written; a workspace without placements costs nothing. Condition times are those of the Placement's own
condition, which the status branch holds: after a recovery they are the same.
"""

from __future__ import annotations

from typing import Any

from apiserver.model import conditions
from apiserver.model.conditions import Condition, condition
from apiserver.model.keys import Key
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Change
from reconciler.controllers.bindings import NAMESPACES, Bindings
from reconciler.controllers.placements import PLACEMENTS
from reconciler.controllers.runtime import Informer, Loop, WorkQueue
from reconciler.plan import placement as plan
from reconciler.plan.selection import selectable, selector_of
from reconciler.plan.syncable import NEVER_NAMESPACES

ANNOTATION = "scheduling.kcp.io/placement"
SCHEDULED = "NamespaceScheduled"

Object = dict[str, Any]


class Namespaces:
    """One work item a workspace: its namespaces are judged together, from one list of its placements."""

    def __init__(self, objects: Objects, informer: Informer, bindings: Bindings) -> None:
        self._objects, self._bindings = objects, bindings
        self._queue: WorkQueue[str] = WorkQueue()
        self._loop = Loop("namespaces", self._queue, self._reconcile)
        informer.on(frozenset({PLACEMENTS}), lambda change: self._queue.add(change.key.cluster))
        informer.on(frozenset({NAMESPACES}), self._namespace_changed)
        informer.on_gap(self.load)

    def load(self) -> None:
        for obj in self._objects.list(PLACEMENTS):
            self._queue.add(obj["metadata"]["annotations"]["kcp.io/cluster"])

    def start(self) -> None:
        self._loop.start()

    def stop(self) -> None:
        self._loop.stop()

    def _namespace_changed(self, change: Change) -> None:
        if self._bindings.bound(change.key.cluster):
            self._queue.add(change.key.cluster)

    def _reconcile(self, cluster: str) -> None:
        placements = list(self._objects.list(PLACEMENTS, cluster))
        for obj in self._objects.list(NAMESPACES, cluster):
            name, labels = selectable(obj)
            if name in NEVER_NAMESPACES:
                continue
            mine = [p for p in placements if selector_of(p).matches(labels)]
            if mine or ANNOTATION in (obj["metadata"].get("annotations") or {}):
                self._objects.update(Key(NAMESPACES, cluster, "", name), lambda ns, mine=mine: marked(ns, mine))  # type: ignore[misc]


def marked(namespace: Object, placements: list[Object]) -> Object:
    """The Namespace with annotation and condition for the placements that select it."""
    annotations = namespace["metadata"].setdefault("annotations", {})
    if placements:
        annotations[ANNOTATION] = ""
    else:
        annotations.pop(ANNOTATION, None)
    status = namespace.setdefault("status", {})
    held = [c for c in status.get("conditions") or () if c["type"] != SCHEDULED]
    told = scheduled(placements)
    status["conditions"] = sorted([*held, *([told] if told else [])], key=lambda c: str(c["type"]))
    if not status["conditions"]:
        del status["conditions"]
    return namespace


def scheduled(placements: list[Object]) -> Condition | None:
    """NamespaceScheduled: True as soon as one of the placements has a sync target; None without any placement."""
    if not placements:
        return None
    said = [(p["metadata"]["name"], _said(p), bool(plan.recorded(p)[0])) for p in placements]
    ok = any(decided for _, __, decided in said)
    message = "; ".join(f"Placement {name} {c.get('message', '')}" for name, c, decided in said if decided == ok)
    at = max(str(c.get("lastTransitionTime", "")) for _, c, decided in said if decided == ok)
    return condition(SCHEDULED, ok, SCHEDULED if ok else "Unschedulable", message, at=at)


def _said(placement: Object) -> Condition:
    found = conditions.get((placement.get("status") or {}).get("conditions"), "Scheduled")
    return found or {"message": "is not decided yet", "lastTransitionTime": placement["metadata"]["creationTimestamp"]}
