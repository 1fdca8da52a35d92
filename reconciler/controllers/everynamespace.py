"""What a cluster puts into every namespace: one object of a fixed name, made where it is missing.

The base of serviceaccounts and rootcas, which say what it is.
"""

from __future__ import annotations

from collections.abc import Iterable

from apiserver.model.keys import Key
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Check, Store
from reconciler.controllers.controller import Controller
from reconciler.controllers.entry import Entry
from reconciler.controllers.served import Serves

NAMESPACES = "namespaces"


class EveryNamespace(Controller[Key]):
    """One work item a namespace, by its key. `resource`, `called`: storage name and name of what every namespace has;
    `repairs`: whether it is looked at when it changes, too, and not only when it is gone."""

    shown = frozenset({NAMESPACES})

    def __init__(self, store: Store, serves: Serves, resource: str, called: str, *, repairs: bool = False) -> None:
        self.objects = Objects(store)
        self.resources = frozenset({NAMESPACES, resource})
        self._serves, self._resource, self._called, self._repairs = serves, resource, called, repairs

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        key = entry.key
        if key.resource == NAMESPACES:
            wanting = entry.value is not None
        else:
            wanting = key.name == self._called and (self._repairs or entry.value is None)
        if wanting and self._serves(key.cluster):
            yield key if key.resource == NAMESPACES else Key(NAMESPACES, key.cluster, "", key.namespace)

    def reconcile(self, key: Key) -> None:
        namespace = self.objects.get(key)
        if namespace is not None and "deletionTimestamp" not in namespace["metadata"]:
            there = Check(key, int(namespace["metadata"]["resourceVersion"]))
            self.provide(Key(self._resource, key.cluster, key.name, self._called), there)

    def provide(self, key: Key, there: Check) -> None:
        """Makes the object, or puts it right. `there`: the namespace. The store's Conflict, where somebody else was
        first, means: again."""
        raise NotImplementedError
