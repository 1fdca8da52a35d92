"""The controllers of what is made through the API where writes go to the store: workspaces, APIs, and their ends;
and of what runtime decides of any workspace."""

from __future__ import annotations

from typing import Any

from apiserver.registry.catalog import Catalog
from apiserver.storage.protocol import Store
from reconciler.controllers.apibindings import APIBindings
from reconciler.controllers.apiexports import APIExports
from reconciler.controllers.controller import Controller
from reconciler.controllers.endpointslices import EndpointSlices
from reconciler.controllers.homes import HomeWorkspaces
from reconciler.controllers.inactivity import Inactivity
from reconciler.controllers.keptschemas import KeptSchemas
from reconciler.controllers.mounts import Mounts
from reconciler.controllers.partitionsets import PartitionSets
from reconciler.controllers.quotas import Quotas
from reconciler.controllers.stragglers import Stragglers
from reconciler.controllers.typefollowers import TypeFollowers
from reconciler.controllers.workspaces import Workspaces
from reconciler.controllers.workspacetypes import WorkspaceTypes
from reconciler.loading.identities import Identities


def workspace_loops(store: Store, identities: Identities) -> list[Controller[Any]]:
    """Of the main store."""
    return [
        Workspaces(store),
        HomeWorkspaces(store),
        Inactivity(store),
        Mounts(store, Catalog(store).kinds),
        Stragglers(store),
        APIBindings(store),
        APIExports(store, identities),
        KeptSchemas(store),
        EndpointSlices(store),
        PartitionSets(store),
        Quotas(store, Catalog(store).kinds),
        WorkspaceTypes(store),
        TypeFollowers(store),
    ]
