"""What a cluster puts into every namespace: one object of a fixed name, made where it is missing.

The base of serviceaccounts and rootcas, which say what it is. A namespace that was made through the API gets it in
every workspace; one of git, where what git declares is all that there is, only in clusters that are served.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future

from apiserver.model import marks
from apiserver.model.keys import Key
from apiserver.storage.protocol import Check, Op, Record, Store
from reconciler.controllers.controller import NO_RESOURCES, Controller
from reconciler.controllers.entry import Entry
from reconciler.controllers.served import Serves

NAMESPACES = "namespaces"
_RUNTIME = marks.as_stored(marks.RUNTIME)
_DYING = b'"deletionTimestamp"'


class EveryNamespace(Controller[Key]):
    """One work item a namespace, by its key. `resource`, `called`: storage name and name of what every namespace has;
    `repairs`: whether it is looked at when it changes, too, and not only when it is gone."""

    shown = frozenset({NAMESPACES})
    beyond = NO_RESOURCES

    def __init__(self, store: Store, serves: Serves, resource: str, called: str, *, repairs: bool = False) -> None:
        self._store = store
        self.resources = frozenset({NAMESPACES, resource})
        self._serves, self._resource, self._called, self._repairs = serves, resource, called, repairs

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        key = entry.key
        if key.resource == NAMESPACES:
            if entry.value is not None and self._wants(key, entry.value):
                yield key
        elif key.name == self._called and (self._repairs or entry.value is None):
            yield Key(NAMESPACES, key.cluster, "", key.namespace)

    def _wants(self, namespace: Key, value: bytes) -> bool:
        return _DYING not in value and (_RUNTIME in value or self._serves(namespace.cluster))

    def reconcile(self, key: Key) -> Future[list[int]] | None:
        namespace = self._store.get(key)
        if namespace is None or not self._wants(key, namespace.value):
            return None
        place = Key(self._resource, key.cluster, key.name, self._called)
        op = self.provide(place, self._store.get(place))
        # The store's Conflict, where somebody else was first or the namespace goes, means: again.
        return self._store.write(op, Check(key, namespace.revision)) if op is not None else None

    def provide(self, key: Key, found: Record | None) -> Op | None:
        """What makes the object, or puts it right; None where it is as it should be."""
        raise NotImplementedError
