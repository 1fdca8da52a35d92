"""The one loop of a stand-in: it follows the target's log and reconciles what changed.

A commit rings (store.subscribe), which puts a bell into the work queue; before each key the log is read to its end, so
that a controller never decides on less than what was written, its own writes included. Nothing is polled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from apiserver.model.keys import Key
from apiserver.registry import codec
from apiserver.registry.catalog import Catalog
from apiserver.registry.kinds import target_builtins
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Change, Compacted, Store
from reconciler.controllers.runtime import Loop, WorkQueue
from reconciler.standin import cluster, deployments, garbage, jobs, pods, replicasets, statefulsets
from reconciler.standin.owners import Owners
from reconciler.standin.world import CLUSTER, World

Object = dict[str, Any]

_BELL = Key("~bell", "", "", "")

_CONTROLLERS: dict[str, Callable[[World, Object], None]] = {
    cluster.NAMESPACES: cluster.reconcile_namespace,
    cluster.DEFINITIONS: cluster.reconcile_definition,
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


class StandIn:
    """Of the embedded target with this store. `stop` lets the key at work finish; the store stays open."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._catalog = Catalog(store, target_builtins())
        self._queue: WorkQueue[Key] = WorkQueue(longest=10.0)
        self._loop = Loop("stand-in", self._queue, self._step)
        self._owners = Owners()
        self._world = World(
            store, Objects(store), self._owners, lambda: self._catalog.kinds(CLUSTER), self._queue.add_after
        )
        self._terminating: set[str] = set()
        self._reached = 0
        self._leave: Callable[[], None] = lambda: None

    def start(self) -> None:
        cluster.bootstrap(self._world)
        self._load()
        self._leave = self._store.subscribe(lambda: self._queue.add(_BELL))
        self._queue.add(_BELL)
        self._loop.start()

    def stop(self) -> None:
        self._leave()
        self._loop.stop()

    def _step(self, key: Key) -> None:
        self._catch_up()
        if key == _BELL or (key.namespace in self._terminating and key.resource in _CONTROLLERS):
            return
        obj = self._world.objects.get(key)
        if obj is None or garbage.collected(self._world, key, obj):
            return
        controller = _CONTROLLERS.get(key.resource)
        if controller is not None:
            controller(self._world, obj)

    # -- following the log

    def _load(self) -> None:
        """Look at everything there is: at the start, and where the log no longer tells."""
        self._reached = self._store.revision()
        for storage in sorted({kind.storage for kind in self._world.kinds().all()} - {""}):
            for record in self._store.scan(storage, CLUSTER).records:
                self._noted(record.key, record.value)

    def _catch_up(self) -> None:
        try:
            while changes := self._store.changes(self._reached, 1000):
                for change in changes:
                    self._note(change)
                self._reached = changes[-1].revision
        except Compacted:
            self._load()

    def _note(self, change: Change) -> None:
        key = change.key
        owners = list(self._owners.references(key))
        if change.value is not None:
            self._noted(key, change.value)
        else:
            self._owners.gone(key)
            if key.resource == cluster.NAMESPACES:
                self._terminating.discard(key.name)
            for dependent in self._owners.dependents(_uid(change)):
                self._queue.add(dependent)
        self._add_owners(key, owners)
        if key.namespace in self._terminating:
            self._queue.add(Key(cluster.NAMESPACES, CLUSTER, "", key.namespace))

    def _noted(self, key: Key, value: bytes) -> None:
        """What is there now; its own key comes before its owners', who then see the result."""
        self._owners.seen(key, value)
        if key.resource == cluster.NAMESPACES and orjson.loads(value)["metadata"].get("deletionTimestamp"):
            self._terminating.add(key.name)
        references = list(self._owners.references(key))
        if key.resource in _CONTROLLERS or references:
            self._queue.add(key)
        self._add_owners(key, references)

    def _add_owners(self, key: Key, references: list[Object]) -> None:
        for reference in references:
            resource = _WORKLOADS.get(reference["kind"])
            if resource is not None:
                self._queue.add(Key(resource, CLUSTER, key.namespace, reference["name"]))


def _uid(change: Change) -> str:
    previous = codec.decode(change.previous or b'{"metadata":{}}', change.previous_revision)
    return str(previous["metadata"].get("uid", ""))
