"""The controllers that make the objects of any cluster what kube-apiserver and kube-controller-manager make them.

One manager runs them for all clusters that it is told to serve: workspaces of the main store, or the one cluster of an
embedded sync target's.
"""

from __future__ import annotations

from collections.abc import Callable

from apiserver.registry.catalog import Catalog
from reconciler.controllers.aggregation import Aggregation
from reconciler.controllers.apiservices import APIServices
from reconciler.controllers.definitions import Definitions
from reconciler.controllers.feed import Feed
from reconciler.controllers.manager import CAREFUL, Manager
from reconciler.controllers.protection import Protection
from reconciler.controllers.rootcas import RootCAs
from reconciler.controllers.served import Serves
from reconciler.controllers.serviceaccounts import ServiceAccounts
from reconciler.controllers.serviceaddresses import ServiceAddresses


def cluster_loops(feed: Feed, serves: Serves, bundle: str, busy: Callable[[], bool] = lambda: False) -> Manager:
    """`bundle`: the CA of the server, PEM. Not started yet."""
    store = feed.store
    controllers = (
        ServiceAccounts(store, serves),
        RootCAs(store, serves, bundle),
        Aggregation(store, serves),
        Definitions(store, serves, Catalog(store).kinds),
        APIServices(store, serves),
        ServiceAddresses(store, serves),
        Protection(store, serves),
    )
    return Manager("clusters", controllers, feed, CAREFUL, busy)
