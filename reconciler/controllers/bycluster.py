"""A controller that looks at all objects of one resource of a cluster together, whenever one of them changes."""

from __future__ import annotations

from collections.abc import Iterable

from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Store
from reconciler.controllers.controller import NO_RESOURCES, Controller
from reconciler.controllers.entry import Entry
from reconciler.controllers.served import Serves


class ByCluster(Controller[str]):
    """Its keys are clusters."""

    beyond = NO_RESOURCES

    def __init__(self, store: Store, serves: Serves) -> None:
        self._objects, self._serves = Objects(store), serves

    def keys_of(self, entry: Entry) -> Iterable[str]:
        if self._serves(entry.key.cluster):
            yield entry.key.cluster
