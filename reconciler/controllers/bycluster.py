"""A controller that looks at all objects of one resource of a cluster together, whenever one of them changes."""

from __future__ import annotations

from apiserver.model.keys import Key
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Change, Record, Store
from reconciler.controllers.follower import Part
from reconciler.controllers.served import Serves


class ByCluster(Part):
    """`resource` is a storage name; `handle` gets it with the cluster, without namespace and name."""

    resource: str

    def __init__(self, store: Store, serves: Serves) -> None:
        self._objects, self._serves = Objects(store), serves

    def found(self, record: Record) -> None:
        self._look(record.key)

    def changed(self, change: Change) -> None:
        self._look(change.key)

    def _look(self, key: Key) -> None:
        if key.resource == self.resource and self._serves(key.cluster):
            self.desk.add(Key(self.resource, key.cluster, "", ""))
