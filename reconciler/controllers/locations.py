"""Locations: how many sync targets each has and how many of them take new placements.

Whether a target answers is in no log, so each start looks at every Location; memory holds nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from apiserver.model.identity import sync_target_key
from apiserver.model.keys import Key
from apiserver.model.storagenames import SYNC_TARGETS
from apiserver.registry.objects import Objects
from reconciler.controllers.controller import Controller
from reconciler.controllers.entry import Entry
from reconciler.controllers.heartbeats import Heartbeats
from reconciler.controllers.targets import since
from reconciler.plan.placement import Target, available, instances
from reconciler.plan.unsupported import stated, with_stated

LOCATIONS = "locations.scheduling.kcp.io"
LABELS = "scheduling.kcp.io/labels"

Object = dict[str, Any]


class Locations(Controller[str]):
    """One work item a workspace: its locations are counted together, from one list of its sync targets."""

    name = "locations"
    resources = frozenset({LOCATIONS, SYNC_TARGETS})
    shown = frozenset({LOCATIONS})

    def __init__(self, objects: Objects, heartbeats: Heartbeats) -> None:
        self._objects, self._heartbeats = objects, heartbeats
        heartbeats.on_return(lambda place: self.queue.add(place.cluster))

    def keys_of(self, entry: Entry) -> Iterable[str]:
        yield entry.key.cluster

    def reconcile(self, key: str) -> None:
        names = [obj["metadata"]["name"] for obj in self._objects.list(LOCATIONS, key)]
        if not names:
            return
        targets = [
            Target.of(obj, key, "", self._heartbeats.seen(sync_target_key(key, obj["metadata"]["name"])))
            for obj in self._objects.list(SYNC_TARGETS, key)
        ]
        for name in names:
            self._objects.update(Key(LOCATIONS, key, "", name), lambda obj: counted(obj, targets))


def counted(location: Object, targets: list[Target]) -> Object:
    """The Location with its counts and the annotation that kubectl shows as its labels."""
    mine = instances(location, targets)
    unused = stated(LOCATIONS, location, since(location))
    status = location.setdefault("status", {})
    status["instances"], status["availableInstances"] = len(mine), sum(available(t) for t in mine)
    told = with_stated(status.pop("conditions", ()), unused)
    if told:
        status["conditions"] = told
    labels = location["metadata"].get("labels") or {}
    location["metadata"].setdefault("annotations", {})[LABELS] = " ".join(f"{k}={labels[k]}" for k in sorted(labels))
    return location
