"""Placements by what they depend on, so that a change wakes only those concerned; and how many each target has.

Kept by the placements controller, from what it is told of and from what it looked at. Memory holds a few names for each
Placement that there is, nothing for a workspace without. A start sees every Placement: what it depends on is found by
deciding.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from apiserver.model.keys import Key
from reconciler.plan import placement as plan

Object = dict[str, Any]


class PlacementIndex:
    """Safe from every thread."""

    def __init__(self) -> None:
        self._of: dict[str, set[Key]] = {}
        self._looked: dict[Key, frozenset[str]] = {}
        self._lookers: dict[str, set[Key]] = {}
        self._targets: dict[Key, str] = {}
        self._load: Counter[str] = Counter()
        self._lock = threading.Lock()

    def put(self, key: Key, obj: Object) -> None:
        with self._lock:
            self._count(key, plan.recorded(obj)[0])
            self._of.setdefault(key.cluster, set()).add(key)

    def looks(self, key: Key, *places: str) -> None:
        """What the Placement's decision was made from: logical clusters and workspace paths."""
        with self._lock:
            self._look(key, frozenset(places) - {""})

    def drop(self, key: Key) -> None:
        with self._lock:
            self._count(key, "")
            self._look(key, frozenset())
            self._of.get(key.cluster, set()).discard(key)

    def placements(self) -> Iterable[Key]:
        with self._lock:
            return sorted(key for keys in self._of.values() for key in keys)

    def of(self, cluster: str) -> Iterable[Key]:
        return self._sorted(self._of, cluster)

    def looking(self, cluster: str, place: str) -> Iterable[Key]:
        """Those of a logical cluster that depend on another, or on a workspace path."""
        with self._lock:
            return sorted(key for key in self._of.get(cluster, ()) if place in self._looked.get(key, ()))

    def lookers(self, place: str) -> Iterable[Key]:
        """Those that depend on a logical cluster or workspace path."""
        return self._sorted(self._lookers, place)

    def load(self, without: Key) -> Mapping[str, int]:
        """Placements on each target, by key."""
        with self._lock:
            found = dict(self._load)
            mine = self._targets.get(without, "")
            if mine:
                found[mine] -= 1
            return found

    def _sorted(self, table: Mapping[str, set[Key]], place: str) -> Iterable[Key]:
        if place not in table:
            return ()
        with self._lock:
            return sorted(table[place])

    def _count(self, key: Key, target: str) -> None:
        self._load[self._targets.pop(key, "")] -= 1
        if target:
            self._targets[key] = target
        self._load[target] += 1

    def _look(self, key: Key, places: frozenset[str]) -> None:
        for gone in self._looked.pop(key, frozenset()) - places:
            self._lookers[gone].discard(key)
        for place in places:
            self._lookers.setdefault(place, set()).add(key)
        if places:
            self._looked[key] = places
