"""Finalizers that are waited for, and controllers that do what there is to do when they are gone."""

from __future__ import annotations

from typing import Any

from support.following import Following
from support.loadedfleet import LoadedFleet

from apiserver.registry.catalog import Catalog
from apiserver.storage.protocol import Delete
from reconciler.controllers import clusterparts, housekeeping
from reconciler.controllers.awaited import Awaited
from reconciler.controllers.clusterparts import Clusters
from reconciler.controllers.controller import Controller
from reconciler.controllers.workspaceparts import workspace_loops
from reconciler.loading import awaited
from reconciler.loading.identities import Identities

CA = "-----BEGIN CERTIFICATE-----"
HELD = ["example.io/hold"]


class Settling:
    """Has controllers do all there is to do, and the loader what they ask it for; of several fleets."""

    def __init__(self) -> None:
        self._running: dict[int, Following] = {}

    def __call__(self, fleet: LoadedFleet) -> None:
        store = fleet.store
        if id(fleet) not in self._running:
            made: list[Controller[Any]] = [*housekeeping.controllers(store, Catalog(store).kinds), Awaited(store)]
            made += clusterparts.controllers(store, Clusters.of_workspaces(store), CA)
            made += workspace_loops(store, Identities(fleet.keys / "identities"))
            self._running[id(fleet)] = Following.of(store, *made)
        self._running[id(fleet)].settle()
        while awaited.waiting(store):
            awaited.serve(store, fleet.loader.look_again)
            self._running[id(fleet)].settle()

    def restart(self, fleet: LoadedFleet, *, killed: bool) -> None:
        """Controllers begin again, where they had noted how far they were (`killed`: before that)."""
        before = self._running.pop(id(fleet), None)
        if before is not None and not killed:
            before.feed.save()

    def let_go(self, fleet: LoadedFleet, path: str, name: str, resource: str) -> None:
        """As whoever set the finalizer: the object goes with its last one."""
        self(fleet)
        fleet.store.write(Delete(fleet.key(path, resource, name))).result()
        self(fleet)


def keep(fleet: LoadedFleet, path: str, name: str, resource: str) -> None:
    """Somebody sets a finalizer."""
    fleet.update(fleet.key(path, resource, name), lambda obj: obj["metadata"].update(finalizers=HELD))
