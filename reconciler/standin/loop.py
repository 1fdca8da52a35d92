"""The stand-in of one target: what every store of Kubernetes objects needs, and controllers for workloads.

All of it is one follower of the target's log (see controllers/follower): a controller never decides on less than what
was written, its own writes included. Nothing is polled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import orjson

from apiserver.model.keys import Key
from apiserver.registry.catalog import Catalog
from apiserver.registry.kinds import target_builtins
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Change, Record, Store
from reconciler.controllers import disposal
from reconciler.controllers.follower import Follower, Part
from reconciler.controllers.housekeeping import parts
from reconciler.controllers.owners import Reference, references_of
from reconciler.controllers.settings import HousekeepingSettings
from reconciler.standin import cluster, deployments, jobs, pods, replicasets, statefulsets
from reconciler.standin.disruptions import Disruptions
from reconciler.standin.world import CLUSTER, World

Object = dict[str, Any]

_CONTROLLERS: dict[str, Callable[[World, Object], None]] = {
    cluster.NAMESPACES: cluster.reconcile_namespace,
    cluster.CLAIMS: cluster.reconcile_claim,
    deployments.DEPLOYMENTS: deployments.reconcile,
    replicasets.REPLICA_SETS: replicasets.reconcile,
    statefulsets.STATEFUL_SETS: statefulsets.reconcile_stateful_set,
    statefulsets.DAEMON_SETS: statefulsets.reconcile_daemon_set,
    jobs.JOBS: jobs.reconcile,
    pods.PODS: pods.reconcile,
}
_WORKLOADS = {
    "Deployment": deployments.DEPLOYMENTS,
    "ReplicaSet": replicasets.REPLICA_SETS,
    "StatefulSet": statefulsets.STATEFUL_SETS,
    "DaemonSet": statefulsets.DAEMON_SETS,
    "Job": jobs.JOBS,
}
"""Controllers that look again when something of theirs changes."""
_MENTION = b'"ownerReferences"'


class StandIn:
    """Of the embedded target with this store. `stop` lets the key at work finish; the store stays open."""

    def __init__(self, store: Store, settings: HousekeepingSettings | None = None) -> None:
        catalog = Catalog(store, target_builtins())
        garbage, rest = parts(store, catalog.kinds, settings, disposal.anything)
        workloads = _Workloads()
        self._world = World(store, Objects(store), garbage.owners, workloads.later)
        workloads.world = self._world
        self._follower = Follower("stand-in", store, [garbage, *rest, workloads, Disruptions(store)])

    def start(self) -> None:
        cluster.bootstrap(self._world)
        self._follower.start()

    def stop(self) -> None:
        self._follower.stop()

    @property
    def idle(self) -> bool:
        return self._follower.idle


class _Workloads(Part):
    """Hands what changed to the controller of its kind, and to its owners' after that: they see the result."""

    world: World

    def later(self, key: Key, seconds: float) -> None:
        self.desk.later(key, seconds)

    def found(self, record: Record) -> None:
        self._noted(record.key, _references(record.value))

    def changed(self, change: Change) -> None:
        key = change.key
        if change.value is not None:
            self._noted(key, _references(change.value))
        self._add_owners(key, _references(change.previous))

    def handle(self, key: Key) -> None:
        obj = self.world.objects.get(key)
        if obj is None or (key.resource != pods.PODS and self._namespace_ends(key)):
            return
        _CONTROLLERS[key.resource](self.world, obj)

    def _namespace_ends(self, key: Key) -> bool:
        """Nothing new may be made there; pods go on ending."""
        if not key.namespace:
            return False
        found = self.world.get(cluster.NAMESPACES, "", key.namespace)
        return found is None or bool(found["metadata"].get("deletionTimestamp"))

    def _noted(self, key: Key, references: Sequence[Reference]) -> None:
        if key.resource in _CONTROLLERS:
            self.desk.add(key)
        self._add_owners(key, references)

    def _add_owners(self, key: Key, references: Sequence[Reference]) -> None:
        for reference in references:
            resource = _WORKLOADS.get(reference.kind)
            if resource is not None:
                self.desk.add(Key(resource, CLUSTER, key.namespace, reference.name))


def _references(value: bytes | None) -> Sequence[Reference]:
    return references_of(orjson.loads(value)) if value is not None and _MENTION in value else ()
