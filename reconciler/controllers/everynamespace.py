"""What a cluster puts into every namespace: one object of a fixed name, made where it is missing.

The base of serviceaccounts and rootcas, which say what it is.
"""

from __future__ import annotations

from concurrent.futures import Future

from apiserver.model.keys import Key
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Change, Record, Store
from reconciler.controllers.follower import Part
from reconciler.controllers.served import Serves

NAMESPACES = "namespaces"


class EveryNamespace(Part):
    """One work item a namespace, by its key. `resource`, `name`: of what every namespace has; `repairs`: whether it is
    looked at when it changes, too, and not only when it is gone."""

    def __init__(self, store: Store, serves: Serves, resource: str, name: str, *, repairs: bool = False) -> None:
        self.objects = Objects(store)
        self._serves, self._resource, self._name, self._repairs = serves, resource, name, repairs

    def found(self, record: Record) -> None:
        if record.key.resource == NAMESPACES and self._serves(record.key.cluster):
            self.desk.add(record.key)

    def changed(self, change: Change) -> None:
        key = change.key
        if key.resource == NAMESPACES:
            wanting = change.value is not None
        else:
            mine = key.resource == self._resource and key.name == self._name
            wanting = mine and (self._repairs or change.value is None)
        if wanting and self._serves(key.cluster):
            self.desk.add(key if key.resource == NAMESPACES else Key(NAMESPACES, key.cluster, "", key.namespace))

    def handle(self, key: Key) -> Future[list[int]] | None:
        namespace = self.objects.get(key)
        if namespace is not None and "deletionTimestamp" not in namespace["metadata"]:
            self.provide(Key(self._resource, key.cluster, key.name, self._name))
        return None

    def provide(self, key: Key) -> None:
        """Makes the object, or puts it right. The store's Conflict, where somebody else was first, means: again."""
        raise NotImplementedError
