"""The ServiceAccount `default` of every namespace, made where it is missing."""

from __future__ import annotations

from concurrent.futures import Future

from apiserver.model.keys import Key
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Change, Record, Store
from reconciler.controllers.follower import Part
from reconciler.controllers.served import Serves

NAMESPACES = "namespaces"
ACCOUNTS = "serviceaccounts"
DEFAULT = "default"


class ServiceAccounts(Part):
    """One work item a namespace, by its key."""

    def __init__(self, store: Store, serves: Serves) -> None:
        self._objects, self._serves = Objects(store), serves

    def found(self, record: Record) -> None:
        if record.key.resource == NAMESPACES and self._serves(record.key.cluster):
            self.desk.add(record.key)

    def changed(self, change: Change) -> None:
        key = change.key
        if key.resource == NAMESPACES and change.value is not None and self._serves(key.cluster):
            self.desk.add(key)
        elif key.resource == ACCOUNTS and key.name == DEFAULT and change.value is None and self._serves(key.cluster):
            self.desk.add(Key(NAMESPACES, key.cluster, "", key.namespace))

    def handle(self, key: Key) -> Future[list[int]] | None:
        account = Key(ACCOUNTS, key.cluster, key.name, DEFAULT)
        if stands(self._objects, key) and self._objects.get(account) is None:
            made = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {}}
            self._objects.create(account, made, runtime=True)
        return None


def stands(objects: Objects, namespace: Key) -> bool:
    """Whether there is such a namespace, and new content may be put into it."""
    found = objects.get(namespace)
    return found is not None and "deletionTimestamp" not in found["metadata"]
