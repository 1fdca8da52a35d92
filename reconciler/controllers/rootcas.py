"""The ConfigMap `kube-root-ca.crt` of every namespace: the CA of this server, for programs that run inside.

Made where it is missing, and put right where somebody changed it; one that git declares is git's.
"""

from __future__ import annotations

from typing import Any

from apiserver.model import marks
from apiserver.model.keys import Key
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Change, Conflict
from reconciler.controllers.runtime import Informer, Loop, WorkQueue
from reconciler.controllers.served import Serves, records
from reconciler.controllers.serviceaccounts import NAMESPACES, stands

CONFIG_MAPS = "configmaps"
NAME = "kube-root-ca.crt"
DESCRIPTION = "The CA bundle by which programs in this cluster check the certificate of its API server."

Object = dict[str, Any]


class RootCAs:
    """One work item a namespace: (cluster, name). `bundle`: the certificates, PEM."""

    def __init__(self, objects: Objects, informer: Informer, serves: Serves, bundle: str) -> None:
        self._objects, self._serves = objects, serves
        self._data = {"ca.crt": bundle}
        self._queue: WorkQueue[tuple[str, str]] = WorkQueue()
        self._loop = Loop("rootcas", self._queue, self._reconcile)
        informer.on(frozenset({NAMESPACES}), self._namespace_changed)
        informer.on(frozenset({CONFIG_MAPS}), self._config_map_changed)
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

    def _config_map_changed(self, change: Change) -> None:
        if change.key.name == NAME and self._serves(change.key.cluster):
            self._queue.add((change.key.cluster, change.key.namespace))

    def _reconcile(self, item: tuple[str, str]) -> None:
        cluster, namespace = item
        if not stands(self._objects, cluster, namespace):
            return
        key = Key(CONFIG_MAPS, cluster, namespace, NAME)
        if self._objects.update(key, self._repaired) is not None:
            return
        metadata = {"annotations": {"kubernetes.io/description": DESCRIPTION}}
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(self._data)}
        try:
            self._objects.create(key, made, runtime=True)
        except Conflict:
            self._queue.add(item)  # somebody else made one meanwhile, with whatever in it

    def _repaired(self, found: Object) -> Object | None:
        if marks.SOURCE_PATH in (found["metadata"].get("annotations") or {}):
            return None
        return {**found, "data": dict(self._data)}
