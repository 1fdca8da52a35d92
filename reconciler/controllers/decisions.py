"""Hands decisions on to the syncers (Bindings), once the status branch holds them.

Works with the placements controller: whatever changes of a Placement comes by here, its decision included. That a
Placement went is told at once, and why: only the entry of its end says that. A restart goes on where it was.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from apiserver.model import marks
from apiserver.model.keys import Key
from apiserver.registry import tree
from apiserver.registry.indexes import PLACEMENTS
from apiserver.registry.objects import Objects
from reconciler.controllers.bindings import Bindings
from reconciler.controllers.controller import Controller
from reconciler.controllers.deliberate import deliberate
from reconciler.controllers.entry import Entry
from reconciler.controllers.standings import Standing
from reconciler.plan import placement as plan
from reconciler.plan.selection import selector_of


class Decisions(Controller[Key]):
    """`durable`: blocks until the status branch holds everything up to a store revision."""

    name, version = "decisions", "1"
    resources = frozenset({PLACEMENTS})

    def __init__(self, objects: Objects, bindings: Bindings, durable: Callable[[int], None]) -> None:
        self._objects, self._bindings, self._durable = objects, bindings, durable
        self._lock = threading.Lock()
        self._began = 0

    def begin(self) -> None:
        self._began = self._objects.store.revision()

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        if entry.value is not None:
            return (entry.key,)
        # What went while no server ran git explains, which knows more: what the target has may be of another commit.
        seen = entry.revision > self._began
        self._withdraw(entry.key, explained=seen and entry.previous is not None and deliberate(entry.before))
        return ()

    def complete(self) -> Iterable[Key]:
        store = self._objects.store
        for key in self._bindings.everywhere() if tree.fleet(store).loaded else ():
            if store.get(key) is None:
                # Its deletion was in a part of the log that is gone, and so is the reason.
                self._withdraw(key, explained=False)
        return ()

    def reconcile(self, key: Key) -> None:
        obj = self._objects.get(key)
        if obj is None:
            return  # the entry of its deletion withdraws it: that tells why it is gone, which cannot be seen here
        target, leaving = plan.recorded(obj)
        annotations = obj["metadata"].get("annotations") or {}
        standing = Standing(target, leaving, selector_of(obj), nothing_new=marks.NOTHING_NEW in annotations)
        before = self._bindings.standings(key.cluster).get(key.name)
        if before == standing or (before is None and not target and not leaving):
            return
        self._durable(int(obj["metadata"]["resourceVersion"]))
        with self._lock:
            # Deleted meanwhile: its withdrawal came, or waits for the lock.
            if self._objects.get(key) is not None:
                self._bindings.set(key.cluster, key.name, standing)

    def _withdraw(self, key: Key, *, explained: bool) -> None:
        """The Placement is gone; see Bindings."""
        with self._lock:
            self._bindings.withdraw(key.cluster, key.name, explained=explained)
