"""The ServiceAccount `default` of every namespace, made where it is missing."""

from __future__ import annotations

from apiserver.model.keys import Key
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Change, Conflict
from reconciler.controllers.runtime import Informer, Loop, WorkQueue
from reconciler.controllers.served import Serves, records

NAMESPACES = "namespaces"
ACCOUNTS = "serviceaccounts"
DEFAULT = "default"


class ServiceAccounts:
    """One work item a namespace: (cluster, name)."""

    def __init__(self, objects: Objects, informer: Informer, serves: Serves) -> None:
        self._objects, self._serves = objects, serves
        self._queue: WorkQueue[tuple[str, str]] = WorkQueue()
        self._loop = Loop("serviceaccounts", self._queue, self._reconcile)
        informer.on(frozenset({NAMESPACES}), self._namespace_changed)
        informer.on(frozenset({ACCOUNTS}), self._account_changed)
        informer.on_gap(self.load)

    def load(self) -> None:
        for record in records(self._objects.store, NAMESPACES, self._serves):
            self._queue.add((record.key.cluster, record.key.name))

    def start(self) -> None:
        self._loop.start()

    def stop(self) -> None:
        self._loop.stop()

    def _namespace_changed(self, change: Change) -> None:
        if change.value is not None and self._serves(change.key.cluster):
            self._queue.add((change.key.cluster, change.key.name))

    def _account_changed(self, change: Change) -> None:
        if change.value is None and change.key.name == DEFAULT and self._serves(change.key.cluster):
            self._queue.add((change.key.cluster, change.key.namespace))

    def _reconcile(self, item: tuple[str, str]) -> None:
        cluster, namespace = item
        key = Key(ACCOUNTS, cluster, namespace, DEFAULT)
        if not stands(self._objects, cluster, namespace) or self._objects.get(key) is not None:
            return
        try:
            self._objects.create(key, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {}}, runtime=True)
        except Conflict:
            return  # somebody else made it meanwhile


def stands(objects: Objects, cluster: str, namespace: str) -> bool:
    """Whether there is such a namespace, and new content may be put into it."""
    found = objects.get(Key(NAMESPACES, cluster, "", namespace))
    return found is not None and "deletionTimestamp" not in found["metadata"]
