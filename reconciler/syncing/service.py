"""Syncing as a whole: the loops of sync targets, locations, placements and namespaces, and a syncer for each target.

The reconciler's `serve` makes one `Syncing`, starts it after the store is open and stops it at the end. It reads and
writes the store only; credentials, durability and what git says are functions that it is given.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from apiserver.model.identity import sync_target_key
from apiserver.model.storagenames import BINDINGS, CRDS
from apiserver.model.storagenames import EXPORTS as API_EXPORTS
from apiserver.registry import tree
from apiserver.registry.catalog import Catalog
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Store
from reconciler.controllers.bindings import NAMESPACES, Bindings, NamespaceRole
from reconciler.controllers.controller import EVERYTHING, NO_RESOURCES, Controller
from reconciler.controllers.deliberate import deliberate
from reconciler.controllers.entry import Entry
from reconciler.controllers.feed import Feed
from reconciler.controllers.heartbeats import Heartbeats
from reconciler.controllers.locations import Locations
from reconciler.controllers.manager import Manager
from reconciler.controllers.namespaces import Namespaces
from reconciler.controllers.placements import PLACEMENTS, Placements, PlacementWorld
from reconciler.controllers.synctargets import SyncTargets
from reconciler.controllers.targets import Cluster, Credentials, Kubeconfig, TargetIndex
from reconciler.controllers.uses import Uses
from reconciler.plan.notices import Notice
from reconciler.syncing.client import TargetClient, connect
from reconciler.syncing.exports import offered
from reconciler.syncing.homes import Identity
from reconciler.syncing.keepers import Keepers
from reconciler.syncing.lease import Contender
from reconciler.syncing.moves import Moves
from reconciler.syncing.renewal import Renewals, TokenKeeping
from reconciler.syncing.report import Reports
from reconciler.syncing.settings import SyncSettings
from reconciler.syncing.target import Surroundings, Syncer
from reconciler.syncing.unplaced import Unplaced
from reconciler.syncing.upstream import AUTOSCALERS, UNKNOWN, Item, Past, Upstream, kind_of_storage

Object = dict[str, Any]


KINDS = frozenset({BINDINGS, CRDS})
"""What decides which kinds a workspace serves."""


class Syncing:
    """`feed`: of the fleet's store. `credentials`: from a SyncTarget to its kubeconfig. `durable`: blocks until the
    status branch holds everything up to a store revision. `past`: what git says of what is found on a target. `barred`:
    why no cluster may be written to just now (another server holds the fleet), "" if it may; what waits is tried again.
    `contender`: as whom this server has the Leases of real targets; None: it needs none. `store`: what it reads, and
    writes to; None: the feed's. `happened`: what did, to be told on objects. `keeping`: where new tokens are written;
    None: none are asked for."""

    def __init__(
        self,
        feed: Feed,
        settings: SyncSettings,
        credentials: Credentials,
        durable: Callable[[int], None],
        past: Past = UNKNOWN,
        barred: Callable[[], str] = lambda: "",
        contender: Contender | None = None,
        store: Store | None = None,
        happened: Callable[[Notice], None] = lambda _: None,
        keeping: TokenKeeping | None = None,
    ) -> None:
        store = store or feed.store
        self._happened = happened
        renewals = Renewals(keeping, self._connect) if keeping is not None else None
        self.settings, self._durable = settings, durable
        self._objects, catalog = Objects(store), Catalog(store)
        self._syncers: dict[str, Syncer] = {}
        self._lock = threading.Lock()
        self._ended = False
        self._leaving: list[threading.Thread] = []
        """Ending syncers of targets that are gone or have other credentials."""
        self._index = TargetIndex(self._objects)
        self.bindings = Bindings(self._objects)
        self._upstream = Upstream(self._objects, catalog, self.bindings, past, lambda: feed.reached)
        heartbeats = Heartbeats(settings.targets.threshold)
        world = PlacementWorld(self._objects, catalog, self._index, heartbeats, self.bindings, Uses(store), durable)
        placements = Placements(world, settings.targets)
        self._targets = SyncTargets(
            self._objects, heartbeats, credentials, self._connect, self._offered, self._told, settings.targets, renewals
        )
        unplaced = Unplaced(self._upstream, self._index, self.syncers)
        self._namespaces = Namespaces(self._objects, self.bindings, unplaced)
        self._moves = Moves(self.bindings, self.syncers, placements.left)
        self._keepers = Keepers(contender, lambda: tree.fleet(store).fleet, settings.lease, barred, self._lease_changed)
        self._reports = Reports(self._upstream, self._index, self.syncers, self._keepers.find, settings.report)
        # A thread each: none waits for what another waits for.
        alone: tuple[Controller[Any], ...] = (
            self._targets, Locations(self._objects, heartbeats), placements, placements.decisions, placements.grants,
            self._namespaces, self._moves, self._reports, self._reports.targets,
        )  # fmt: skip
        indexes = Manager("syncing", [self._index, self.bindings, _Changes(self)], feed)
        self._managers = (indexes, *(Manager(controller.name, [controller], feed) for controller in alone))
        self.bindings.on(self._role_changed)

    def start(self) -> None:
        """Returns at once; what cannot be done yet (no commit loaded, no target there) is done when it can. The feed is
        started beside this."""
        for manager in self._managers:
            manager.start()

    def stop(self) -> None:
        """After the feed. What was let go of before ends in its own time, for which this waits as for the others."""
        with self._lock:
            self._ended = True
        self._keepers.end()
        self._keepers.release({key: syncer.stop() for key, syncer in self.syncers().items()})
        for manager in self._managers:
            manager.stop()
        self._targets.end()
        for thread in self._leaving:
            thread.join(3.0)

    def syncers(self) -> dict[str, Syncer]:
        """Those of connected targets, by key."""
        with self._lock:
            return dict(self._syncers)

    def _connect(self, kubeconfig: Kubeconfig) -> Cluster:
        return connect(kubeconfig, self.settings.client)

    def _offered(self, target: Object) -> Any:
        return offered(self._objects, target)

    def _told(self, key: str, target: Object | None, cluster: Cluster | None) -> None:
        """A target was connected, lost its credentials, or is no more."""
        with self._lock:
            before = self._syncers.get(key)
        if before is not None and target is not None and before.client is cluster:
            before.offer(offered(self._objects, target))
            return
        client = cluster if target is not None and isinstance(cluster, TargetClient) else None
        made = self._made(target, client) if target is not None and client is not None else None
        if target is not None:
            self._keepers.connected(key, client)
        else:
            self._keepers.drop(key)
        with self._lock:
            if self._ended:
                return
            self._syncers.pop(key, None)
            if made is not None:
                self._syncers[key] = made
                made.start()
            self._leaving = [thread for thread in self._leaving if thread.is_alive()]
            if before is not None:
                # A request to a target that hangs ends in its own time; nothing waits for it while we run.
                self._leaving.append(threading.Thread(target=before.stop, name=f"stop-{key}", daemon=True))
                self._leaving[-1].start()

    def _lease_changed(self, key: str, can: bool) -> None:
        """A target may be written to again, or no more."""
        self._reports.target(key)
        syncer = self.syncers().get(key)
        if can and syncer is not None and syncer.ready.is_set():
            syncer.everything()

    def _made(self, target: Object, client: TargetClient) -> Syncer:
        metadata = target["metadata"]
        cluster, name = metadata["annotations"]["kcp.io/cluster"], metadata["name"]
        identity = Identity(sync_target_key(cluster, name), cluster, name, metadata["uid"])

        def heard(workspace: str, _: str) -> None:
            self._reports.workspace(workspace)
            self._reports.target(identity.key)
            self._moves.look(workspace)

        around = Surroundings(heard, self._home_changed, self._durable, self._settled, self._happened)
        return Syncer(identity, client, offered(self._objects, target), self._upstream, self.settings, around)

    def _settled(self, cluster: str, namespace: str) -> bool:
        """Whether a namespace is healthy on all targets that are to run it; also where there is none."""
        if self.bindings.underway(cluster, namespace):
            return False
        syncers = self.syncers()
        here = [key for key, role in self.bindings.roles(cluster, namespace).items() if role is NamespaceRole.HERE]
        return all(key in syncers and syncers[key].settled(cluster, namespace) for key in here)

    def _home_changed(self, cluster: str, _: str) -> None:
        self._namespaces.look(cluster)

    def changed(self, entry: Entry) -> None:
        """An object changed somewhere: a work item for each target that it runs on."""
        key = entry.key
        if key.namespace:
            kind = kind_of_storage(key.resource)
            for syncer in self._concerned(key.cluster, key.namespace):
                syncer.changed(Item(kind, key.cluster, key.namespace, key.name), deleted=_deleted(entry))
                # The commit that the namespace is at is noted on the target, once it is quiet.
                syncer.upkeep(key.cluster, key.namespace)
                if kind == AUTOSCALERS:
                    syncer.namespace(key.cluster, key.namespace)
        elif key.resource == API_EXPORTS:
            self._targets.look()
            for syncer_key, syncer in self.syncers().items():
                target = self._index.get(syncer_key)
                if target is not None:
                    syncer.offer(offered(self._objects, target))
        elif key.resource in KINDS and self.bindings.bound(key.cluster):
            for namespace in self.bindings.namespaces(key.cluster):
                self._role_changed(key.cluster, namespace)
        elif key.resource in (NAMESPACES, PLACEMENTS):
            for syncer in self.syncers().values():
                syncer.placed(key.cluster)
        elif self.bindings.bound(key.cluster):
            self._reports.workspace(key.cluster)

    def _concerned(self, cluster: str, namespace: str) -> list[Syncer]:
        if not self._syncers:
            return []
        roles = self.bindings.roles(cluster, namespace)
        with self._lock:
            return [s for s in self._syncers.values() if s.key in roles or s.holds(cluster, namespace)]

    def _role_changed(self, cluster: str, namespace: str) -> None:
        for syncer in self._concerned(cluster, namespace):
            syncer.namespace(cluster, namespace)
        self._moves.look(cluster)
        self._reports.workspace(cluster)

    def missed(self) -> None:
        """What changed was not told."""
        for syncer in self.syncers().values():
            syncer.everything()


class _Changes(Controller[str]):
    """Has the syncers look at what changes where they run something: two look-ups for every object."""

    name = "changes"
    resources = EVERYTHING
    shown = NO_RESOURCES

    def __init__(self, syncing: Syncing) -> None:
        self._syncing = syncing

    def keys_of(self, entry: Entry) -> Iterable[str]:
        self._syncing.changed(entry)
        return ()

    def complete(self) -> Iterable[str]:
        self._syncing.missed()
        return ()


def _deleted(entry: Entry) -> bool:
    return entry.value is None and entry.previous is not None and deliberate(entry.before)
