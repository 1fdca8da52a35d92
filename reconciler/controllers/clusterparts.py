"""The controllers that make the objects of any cluster what kube-apiserver and kube-controller-manager make them.

One manager runs them for all clusters that it is told to serve: workspaces of the main store, or the one cluster of an
embedded sync target's. Definitions, roles and namespaces are in every workspace; the rest is of kinds that only those
with all of Kubernetes' have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from apiserver.registry.catalog import Catalog
from apiserver.registry.kinds import KUBERNETES
from apiserver.storage.protocol import Store
from reconciler.controllers.aggregation import Aggregation
from reconciler.controllers.apiservices import APIServices
from reconciler.controllers.controller import Controller
from reconciler.controllers.definitions import Definitions
from reconciler.controllers.feed import Feed
from reconciler.controllers.manager import CAREFUL, Manager
from reconciler.controllers.protection import Protection
from reconciler.controllers.rootcas import RootCAs
from reconciler.controllers.served import Serves, anywhere, run_like_clusters, started_with
from reconciler.controllers.serviceaccounts import ServiceAccounts
from reconciler.controllers.serviceaddresses import ServiceAddresses


class Clusters(NamedTuple):
    """Which clusters there are. `all`: what concerns any; `namespaces`: in whose every namespace there is what a
    cluster puts there; `kubernetes`: with all of Kubernetes' kinds."""

    all: Serves
    namespaces: Serves
    kubernetes: Serves

    @staticmethod
    def of_workspaces(store: Store) -> Clusters:
        return Clusters(anywhere, run_like_clusters(store), started_with(store, KUBERNETES))

    @staticmethod
    def alike(serves: Serves) -> Clusters:
        return Clusters(serves, serves, serves)


def cluster_loops(feed: Feed, clusters: Clusters, bundle: str, busy: Callable[[], bool] = lambda: False) -> Manager:
    """`bundle`: the CA of the server, PEM. Not started yet."""
    return Manager("clusters", controllers(feed.store, clusters, bundle), feed, CAREFUL, busy)


def controllers(store: Store, clusters: Clusters, bundle: str) -> list[Controller[Any]]:
    """The same, for whoever runs them."""
    return [
        ServiceAccounts(store, clusters.namespaces),
        RootCAs(store, clusters.namespaces, bundle),
        Aggregation(store, clusters.all),
        Definitions(store, clusters.all, Catalog(store).kinds),
        APIServices(store, clusters.kubernetes),
        ServiceAddresses(store, clusters.kubernetes),
        Protection(store, clusters.kubernetes),
    ]
