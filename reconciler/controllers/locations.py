"""Locations: how many sync targets each has and how many of them take new placements."""

from __future__ import annotations

from typing import Any

from apiserver.model.identity import sync_target_key
from apiserver.model.keys import Key
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Change
from reconciler.controllers.heartbeats import Heartbeats
from reconciler.controllers.runtime import Informer, Loop, WorkQueue
from reconciler.controllers.targets import SYNC_TARGETS
from reconciler.plan.placement import Target, available, instances
from reconciler.plan.unsupported import stated, with_stated

LOCATIONS = "locations.scheduling.kcp.io"
LABELS = "scheduling.kcp.io/labels"

Object = dict[str, Any]


class Locations:
    """One work item a workspace: its locations are counted together, from one list of its sync targets."""

    def __init__(self, objects: Objects, informer: Informer, heartbeats: Heartbeats) -> None:
        self._objects, self._heartbeats = objects, heartbeats
        self._queue: WorkQueue[str] = WorkQueue()
        self._loop = Loop("locations", self._queue, self._reconcile)
        informer.on(frozenset({LOCATIONS, SYNC_TARGETS}), self._changed)
        informer.on_gap(self.load)

    def load(self) -> None:
        for obj in self._objects.list(LOCATIONS):
            self._queue.add(obj["metadata"]["annotations"]["kcp.io/cluster"])

    def start(self) -> None:
        self._loop.start()

    def stop(self) -> None:
        self._loop.stop()

    def _changed(self, change: Change) -> None:
        self._queue.add(change.key.cluster)

    def _reconcile(self, cluster: str) -> None:
        names = [obj["metadata"]["name"] for obj in self._objects.list(LOCATIONS, cluster)]
        if not names:
            return
        targets = [
            Target.of(obj, cluster, "", self._heartbeats.seen(sync_target_key(cluster, obj["metadata"]["name"])))
            for obj in self._objects.list(SYNC_TARGETS, cluster)
        ]
        for name in names:
            self._objects.update(Key(LOCATIONS, cluster, "", name), lambda obj: counted(obj, targets))


def counted(location: Object, targets: list[Target]) -> Object:
    """The Location with its counts and the annotation that kubectl shows as its labels."""
    mine = instances(location, targets)
    status = location.setdefault("status", {})
    status["instances"], status["availableInstances"] = len(mine), sum(available(t) for t in mine)
    told = with_stated(
        status.pop("conditions", ()), stated(LOCATIONS, location, location["metadata"]["creationTimestamp"])
    )
    if told:
        status["conditions"] = told
    labels = location["metadata"].get("labels") or {}
    location["metadata"].setdefault("annotations", {})[LABELS] = " ".join(f"{k}={labels[k]}" for k in sorted(labels))
    return location
