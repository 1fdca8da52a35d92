"""The stand-in of one target: what every store of Kubernetes objects needs, and controllers for workloads.

All of it is one manager over the target's log (see controllers/manager): a controller never decides on less than what
was written, its own writes included. Nothing is polled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from apiserver.model.keys import Key
from apiserver.registry.builtins.catalogue import ENTRIES
from apiserver.registry.catalog import Catalog
from apiserver.registry.kinds import target_builtins
from apiserver.registry.objects import Objects
from reconciler.controllers import disposal
from reconciler.controllers.controller import EVERYTHING, Controller
from reconciler.controllers.entry import Entry
from reconciler.controllers.feed import Feed
from reconciler.controllers.housekeeping import controllers
from reconciler.controllers.manager import CAREFUL, Manager
from reconciler.controllers.owners import MENTION, Reference, references_of
from reconciler.controllers.settings import HousekeepingSettings
from reconciler.standin import cluster, deployments, jobs, pods, replicasets, statefulsets
from reconciler.standin.disruptions import Disruptions
from reconciler.standin.world import CLUSTER, StandInWorld

Object = dict[str, Any]

_CONTROLLERS: dict[str, Callable[[StandInWorld, Object], None]] = {
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
    ENTRIES[resource].kind: resource
    for resource in (
        deployments.DEPLOYMENTS,
        replicasets.REPLICA_SETS,
        statefulsets.STATEFUL_SETS,
        statefulsets.DAEMON_SETS,
        jobs.JOBS,
    )
}
"""Controllers that look again when something of theirs changes."""


class StandIn:
    """Of the embedded target with this feed. `stop` lets the key at work finish; feed and store stay."""

    def __init__(self, feed: Feed, settings: HousekeepingSettings | None = None) -> None:
        store = feed.store
        catalog = Catalog(store, target_builtins())
        housekeeping = controllers(store, catalog.kinds, settings, disposal.anything)
        workloads = _Workloads()
        self._world = StandInWorld(store, Objects(store), workloads.later)
        workloads.world = self._world
        self._manager = Manager("stand-in", [*housekeeping, workloads, Disruptions(store)], feed, CAREFUL)

    def start(self) -> None:
        cluster.bootstrap(self._world)
        self._manager.start()

    def stop(self) -> None:
        self._manager.stop()

    @property
    def idle(self) -> bool:
        return self._manager.idle


class _Workloads(Controller[Key]):
    """Hands what changed to the controller of its kind, and to its owners' after that: they see the result."""

    name = "workloads"
    version = "1"
    resources = EVERYTHING
    world: StandInWorld

    def later(self, key: Key, seconds: float) -> None:
        self.queue.add_after(key, seconds)

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        key = entry.key
        if key.resource in _CONTROLLERS and entry.value is not None:
            yield key
        if entry.value is not None and MENTION in entry.value:
            yield from _owners(key, references_of(entry.obj))
        if entry.previous is not None and MENTION in entry.previous:
            yield from _owners(key, references_of(entry.before))

    def reconcile(self, key: Key) -> None:
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


def _owners(key: Key, references: Sequence[Reference]) -> Iterable[Key]:
    """The workloads among them."""
    for reference in references:
        resource = _WORKLOADS.get(reference.kind)
        if resource is not None:
            yield Key(resource, CLUSTER, key.namespace, reference.name)
