"""The loops that kube-apiserver and kube-controller-manager run for the objects of any cluster, put together.

Each is one loop over the store's log for all clusters it serves; which those are is decided here.
"""

from __future__ import annotations

from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Store
from reconciler.controllers.aggregation import Aggregation
from reconciler.controllers.definitions import Definitions
from reconciler.controllers.rootcas import RootCAs
from reconciler.controllers.runtime import Informer
from reconciler.controllers.served import Serves
from reconciler.controllers.serviceaccounts import ServiceAccounts
from reconciler.controllers.serviceaddresses import ServiceAddresses


class ClusterLoops:
    """Make it before the informer starts; `start` looks at everything once. `bundle`: the server's CA, PEM."""

    def __init__(self, store: Store, informer: Informer, serves: Serves, bundle: str) -> None:
        objects = Objects(store)
        self._loops = (
            ServiceAccounts(objects, informer, serves),
            RootCAs(objects, informer, serves, bundle),
            Aggregation(objects, informer, serves),
            Definitions(objects, informer, serves),
            ServiceAddresses(objects, informer, serves),
        )

    def start(self) -> None:
        for loop in self._loops:
            loop.load()
            loop.start()

    def stop(self) -> None:
        for loop in self._loops:
            loop.stop()
