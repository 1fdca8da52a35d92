"""Namespaces that a Placement selects, or did: annotations and a condition that say so.

Only those are written; a workspace without placements costs nothing. Condition times are those of the Placement's own
condition, which the status branch holds: after a recovery they are the same.

What no target is to run any more keeps its last status as long as a target may still have it, then loses it: nobody
would ever put it right. Which targets those are stands on the Namespace (RUNS_ON), so a restart goes on from there.

What targets still have is in no log, so a start looks again at the workspaces where copies linger; their names are what
memory holds.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol

from apiserver.model import clock, conditions, marks
from apiserver.model.conditions import Condition, condition
from apiserver.model.keys import Key
from apiserver.registry import indexes
from apiserver.registry.objects import Objects
from reconciler.controllers.bindings import NAMESPACES, Bindings
from reconciler.controllers.controller import Controller
from reconciler.controllers.entry import Entry
from reconciler.controllers.placements import PLACEMENTS
from reconciler.plan import placement as plan
from reconciler.plan.selection import selectable, selector_of
from reconciler.plan.syncable import NEVER_NAMESPACES

ANNOTATION = "scheduling.kcp.io/placement"
SCHEDULED = "NamespaceScheduled"
NAMESPACE_SYNCED = "NamespaceSynced"
"""Whether all of it is on the sync targets that run it (syncing/report); goes where none is to."""

Object = dict[str, Any]


class Copies(Protocol):
    """What is on sync targets."""

    def linger(self, key: str, cluster: str, namespace: str) -> str:
        """The sync target with this key, as `path:name`, if copies of the namespace may still be there; "" if not."""

    def forget(self, cluster: str, namespace: str, keys: Collection[str]) -> None:
        """Takes from the namespace's objects the status that these targets brought up."""


class Namespaces(Controller[str]):
    """One work item a workspace: its namespaces are judged together, from one list of its placements."""

    name, version = "namespaces", "1"
    resources = frozenset({PLACEMENTS, NAMESPACES})
    shown = frozenset({PLACEMENTS})

    def __init__(self, objects: Objects, bindings: Bindings, copies: Copies) -> None:
        self._objects, self._bindings, self._copies = objects, bindings, copies
        self._lingering: set[str] = set()
        self._lock = threading.Lock()

    def complete(self) -> Iterable[str]:
        """Those that run somewhere although no Placement selects them any more; those that are selected are shown."""
        return {found.term for found in self._objects.store.indexed(indexes.RUNNING)}

    def keys_of(self, entry: Entry) -> Iterable[str]:
        if entry.key.resource == PLACEMENTS or self._bindings.bound(entry.key.cluster):
            yield entry.key.cluster

    def look(self, cluster: str = "") -> None:
        """What targets have of the workspace's namespaces changed; "": of all that may linger somewhere."""
        with self._lock:
            lingering = set(self._lingering)
        for each in lingering if not cluster else {cluster}:
            self.queue.add(each)

    def reconcile(self, key: str) -> None:
        placements = list(self._objects.list(PLACEMENTS, key))
        lingering = False
        for obj in self._objects.list(NAMESPACES, key):
            name, labels = selectable(obj)
            annotations = obj["metadata"].get("annotations") or {}
            mine = [p for p in placements if selector_of(p).matches(labels)]
            if name not in NEVER_NAMESPACES and (mine or annotations.keys() & {ANNOTATION, marks.RUNS_ON}):
                lingering |= self._judge(key, name, mine, _keys(annotations.get(marks.RUNS_ON, "")))
        with self._lock:
            (self._lingering.add if lingering else self._lingering.discard)(key)
        if lingering:
            self.queue.hold(key)

    def _judge(self, cluster: str, name: str, mine: list[Object], ran: Collection[str]) -> bool:
        """Write what is to be said of one; whether copies may linger where it is not to run. `ran`: where it did."""
        decided = [plan.recorded(placement) for placement in mine]
        here = {target for target, _ in decided} - {""}
        wanted = here | {key for _, leaving in decided for key in leaving}
        found = ((key, self._copies.linger(key, cluster, name)) for key in ran if key not in wanted)
        linger = {key: target for key, target in found if target}
        if ran and not wanted and not linger:
            self._copies.forget(cluster, name, ran)
        keys = wanted | linger.keys()
        self._objects.update(Key(NAMESPACES, cluster, "", name), lambda ns: marked(ns, mine, keys, linger.values()))
        return bool(linger)


def marked(namespace: Object, placements: list[Object], keys: Collection[str], linger: Iterable[str] = ()) -> Object:
    """The Namespace with annotations and condition for the placements that select it. `keys`: of the targets that have
    copies, or may have; `linger`: those of them, as `path:name`, that are not to run it."""
    annotations = namespace["metadata"].setdefault("annotations", {})
    was_placed = ANNOTATION in annotations or marks.RUNS_ON in annotations
    _say(annotations, {ANNOTATION: "" if placements else None, marks.RUNS_ON: ",".join(sorted(keys)) or None})
    status = namespace.setdefault("status", {})
    before = conditions.get(status.get("conditions"), SCHEDULED)
    anew = (SCHEDULED,) if placements else (SCHEDULED, NAMESPACE_SYNCED)
    held = [c for c in status.get("conditions") or () if c["type"] not in anew]
    told = scheduled(placements) or (_unplaced(linger, before) if was_placed or before is not None else None)
    status["conditions"] = sorted([*held, *([told] if told else [])], key=lambda c: str(c["type"]))
    if not status["conditions"]:
        del status["conditions"]
    return namespace


def _unplaced(linger: Iterable[str], before: Condition | None) -> Condition:
    message = "no Placement of its workspace selects it, so it runs nowhere"
    there = ", ".join(sorted(linger))
    if there:
        message += f"; sync target {there} may still have copies of it, whose last status is shown until they are gone"
    told = condition(SCHEDULED, False, "NotSelected", message, at=clock.now())
    if before is not None and (before["status"], before["reason"]) == (told["status"], told["reason"]):
        told["lastTransitionTime"] = before["lastTransitionTime"]
    return told


def _say(annotations: Object, said: Mapping[str, str | None]) -> None:
    for name, value in said.items():
        if value is None:
            annotations.pop(name, None)
        else:
            annotations[name] = value


def _keys(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(",")))


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
