"""How many Pods may be evicted: the status of PodDisruptionBudgets, as Kubernetes' disruption controller works it out.

One controller of the stand-in. A budget is looked at again whenever it changes, or a Pod that it selects does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from apiserver.model import clock, conditions, selectors
from apiserver.model.keys import Key
from apiserver.registry.builtins.served import target_builtins
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Store
from reconciler.controllers.controller import Controller
from reconciler.controllers.entry import Entry, decode
from reconciler.standin.pods import PODS, is_ready
from reconciler.standin.world import CLUSTER

Object = dict[str, Any]

BUDGETS = "poddisruptionbudgets.policy"
_SCALED = {kind.kind: kind.storage for kind in target_builtins().all() if kind.scale is not None}
_PATIENCE = 120.0
"""Seconds after which a Pod that was to be evicted and is still there counts again."""


class Disruptions(Controller[Key]):
    """Work items are budgets' keys."""

    name = "disruptions"
    version = "1"
    resources = frozenset({BUDGETS, PODS})
    shown = frozenset({BUDGETS})

    def __init__(self, store: Store) -> None:
        self._store, self._objects = store, Objects(store)

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        key = entry.key
        if key.resource == PODS:
            yield from self._selecting(entry)
        elif entry.value is not None:
            yield key

    def _selecting(self, entry: Entry) -> Iterable[Key]:
        """The budgets that select a Pod as it is, or as it was."""
        for record in self._store.scan(BUDGETS, entry.key.cluster, entry.key.namespace).records:
            selector = _selector(decode(record.value))
            pods = [pod for pod in (entry.before, entry.obj) if pod]
            if any(selector.matches(pod["metadata"].get("labels") or {}) for pod in pods):
                yield record.key

    def reconcile(self, key: Key) -> None:
        told = self._objects.update(key, self._told)
        if told is not None and (told.get("status") or {}).get("disruptedPods"):
            self.queue.add_after(key, _PATIENCE)

    def _told(self, budget: Object) -> Object | None:
        """Of the budget as it is when it is written: an eviction that is noted meanwhile counts."""
        metadata = budget["metadata"]
        if metadata.get("deletionTimestamp"):
            return None
        selector = _selector(budget)
        pods = [p for p in self._objects.list(PODS, CLUSTER, metadata["namespace"])
                if selector.matches(p["metadata"].get("labels"))]  # fmt: skip
        return {**budget, "status": _kept(budget.get("status") or {}, self._status(budget, pods))}

    def _status(self, budget: Object, pods: list[Object]) -> Object:
        expected, desired = self._counts(budget["spec"], pods)
        disrupted = dict(_disrupted((budget.get("status") or {}).get("disruptedPods") or {}, pods))
        healthy = sum(
            is_ready(p) and not p["metadata"].get("deletionTimestamp") and p["metadata"]["name"] not in disrupted
            for p in pods
        )
        return {
            "observedGeneration": budget["metadata"].get("generation", 1),
            "disruptionsAllowed": max(0, healthy - desired) if expected > 0 else 0,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
            "disruptedPods": disrupted,
        }

    def _counts(self, spec: Object, pods: list[Object]) -> tuple[int, int]:
        """How many Pods there should be, and how many of them healthy."""
        least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
        if most is None and isinstance(least, int):
            return len(pods), least
        expected = sum(self._scales(pods).values())
        if most is not None:
            return expected, max(0, expected - _share(most, expected))
        return expected, _share(least or 0, expected)

    def _scales(self, pods: list[Object]) -> dict[str, int]:
        """Of the workloads that the Pods belong to, by uid; those that belong to none do not count."""
        found: dict[str, int] = {}
        for pod in pods:
            owner = self._top(pod)
            if owner is not None:
                found[owner["metadata"]["uid"]] = int((owner.get("spec") or {}).get("replicas", 1))
        return found

    def _top(self, obj: Object) -> Object | None:
        """The workload that something belongs to, and that belongs to none itself."""
        owner: Object | None = None
        while True:
            reference = next((r for r in obj["metadata"].get("ownerReferences") or () if r.get("controller")), None)
            resource = _SCALED.get(reference["kind"]) if reference else None
            if reference is None or resource is None:
                return owner
            key = Key(resource, CLUSTER, obj["metadata"]["namespace"], reference["name"])
            above = self._objects.get(key)
            if above is None:
                return owner
            obj = owner = above


def _selector(budget: Object) -> selectors.LabelSelector:
    return selectors.from_object((budget.get("spec") or {}).get("selector"))


def _share(value: int | str, whole: int) -> int:
    """A number, or a percentage of `whole`, rounded up."""
    if isinstance(value, int):
        return value
    return math.ceil(int(value.removesuffix("%")) * whole / 100)


def _disrupted(noted: dict[str, str], pods: list[Object]) -> Iterator[tuple[str, str]]:
    """Those that are about to go, of what evictions noted."""
    for pod in pods:
        at = noted.get(pod["metadata"]["name"])
        if at is None or pod["metadata"].get("deletionTimestamp"):
            continue
        if clock.parse(clock.now()).timestamp() - clock.parse(at).timestamp() < _PATIENCE:
            yield pod["metadata"]["name"], at


def _kept(old: Object, new: Object) -> Object:
    """The new status, with the condition that follows from it."""
    allowed = new["disruptionsAllowed"] > 0
    reason = "SufficientPods" if allowed else "InsufficientPods"
    told = conditions.condition(
        "DisruptionAllowed", allowed, reason, at=clock.now(), generation=new["observedGeneration"]
    )
    made = {**new, "conditions": conditions.merged(old.get("conditions"), [told])}
    if not made["disruptedPods"]:
        del made["disruptedPods"]
    return made
