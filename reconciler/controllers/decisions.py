"""Hands decisions on to the syncers (Bindings), once the status branch holds them.

Works with the placements controller, which puts in what it decided, and tells of Placements that went.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from apiserver.model import marks
from apiserver.model.keys import Key
from apiserver.registry.objects import Objects
from reconciler.controllers.bindings import Bindings, Standing
from reconciler.controllers.controller import Controller
from reconciler.plan import placement as plan
from reconciler.plan.selection import selector_of


class Decisions(Controller[Key]):
    """`durable`: blocks until the status branch holds everything up to a store revision."""

    name = "decisions"

    def __init__(self, objects: Objects, bindings: Bindings, durable: Callable[[int], None]) -> None:
        self._objects, self._bindings, self._durable = objects, bindings, durable
        self._lock = threading.Lock()

    def reconcile(self, key: Key) -> None:
        obj = self._objects.get(key)
        if obj is None:
            return
        target, leaving = plan.recorded(obj)
        annotations = obj["metadata"].get("annotations") or {}
        standing = Standing(target, leaving, selector_of(obj), nothing_new=marks.NOTHING_NEW in annotations)
        if self._bindings.standings(key.cluster).get(key.name) == standing:
            return
        self._durable(int(obj["metadata"]["resourceVersion"]))
        with self._lock:
            # Deleted meanwhile: its withdrawal came, or waits for the lock.
            if self._objects.get(key) is not None:
                self._bindings.set(key.cluster, key.name, standing)

    def withdraw(self, key: Key, *, explained: bool) -> None:
        """The Placement is gone; see Bindings."""
        with self._lock:
            self._bindings.withdraw(key.cluster, key.name, explained=explained)
