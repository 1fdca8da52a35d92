"""The ConfigMap `kube-root-ca.crt` of every namespace: the CA of this server, for programs that run inside.

Made where it is missing, and put right where somebody changed it; one that git declares is git's.
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from apiserver.model import marks
from apiserver.model.keys import Key
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Change, Record, Store
from reconciler.controllers.follower import Part
from reconciler.controllers.served import Serves
from reconciler.controllers.serviceaccounts import NAMESPACES, stands

CONFIG_MAPS = "configmaps"
NAME = "kube-root-ca.crt"
DESCRIPTION = "The CA bundle by which programs in this cluster check the certificate of its API server."

Object = dict[str, Any]


class RootCAs(Part):
    """One work item a namespace, by its key. `bundle`: the certificates, PEM."""

    def __init__(self, store: Store, serves: Serves, bundle: str) -> None:
        self._objects, self._serves = Objects(store), serves
        self._data = {"ca.crt": bundle}

    def found(self, record: Record) -> None:
        if record.key.resource == NAMESPACES and self._serves(record.key.cluster):
            self.desk.add(record.key)

    def changed(self, change: Change) -> None:
        key = change.key
        if key.resource == NAMESPACES and change.value is not None and self._serves(key.cluster):
            self.desk.add(key)
        elif key.resource == CONFIG_MAPS and key.name == NAME and self._serves(key.cluster):
            self.desk.add(Key(NAMESPACES, key.cluster, "", key.namespace))

    def handle(self, key: Key) -> Future[list[int]] | None:
        if not stands(self._objects, key):
            return None
        bundle = Key(CONFIG_MAPS, key.cluster, key.name, NAME)
        if self._objects.update(bundle, self._repaired) is None:
            metadata = {"annotations": {"kubernetes.io/description": DESCRIPTION}}
            made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(self._data)}
            self._objects.create(bundle, made, runtime=True)  # where somebody else was first: Conflict, and again
        return None

    def _repaired(self, found: Object) -> Object | None:
        if marks.SOURCE_PATH in (found["metadata"].get("annotations") or {}):
            return None
        return {**found, "data": dict(self._data)}
