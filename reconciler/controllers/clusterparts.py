"""The controllers that make the objects of any cluster what kube-apiserver and kube-controller-manager make them.

One follower runs them for all clusters that it is told to serve: workspaces of the main store, or the one cluster of an
embedded sync target's.
"""

from __future__ import annotations

from apiserver.registry.catalog import Catalog
from apiserver.storage.protocol import Store
from reconciler.controllers.aggregation import Aggregation
from reconciler.controllers.apiservices import APIServices
from reconciler.controllers.definitions import Definitions
from reconciler.controllers.follower import Follower
from reconciler.controllers.protection import Protection
from reconciler.controllers.rootcas import RootCAs
from reconciler.controllers.served import Serves
from reconciler.controllers.serviceaccounts import ServiceAccounts
from reconciler.controllers.serviceaddresses import ServiceAddresses


def cluster_loops(store: Store, serves: Serves, bundle: str) -> Follower:
    """`bundle`: the CA of the server, PEM. Not started yet."""
    parts = (
        ServiceAccounts(store, serves),
        RootCAs(store, serves, bundle),
        Aggregation(store, serves),
        Definitions(store, serves, Catalog(store).kinds),
        APIServices(store, serves),
        ServiceAddresses(store, serves),
        Protection(store, serves),
    )
    return Follower("clusters", store, parts)
