"""Controllers and syncing, which work on a store that is served, beside the loading of commits: started and ended
together.

Made by beside once the first load is complete and the status branch is written.
"""

from __future__ import annotations

from collections.abc import Callable

from apiserver.auth.keys import Keys
from apiserver.auth.pki import TokenSigner
from apiserver.model.commits import CommitRef
from apiserver.registry.catalog import Catalog
from reconciler.commands.announcing import Announcing
from reconciler.commands.keptkubeconfigs import KeptKubeconfigs
from reconciler.commands.roles import Work
from reconciler.commands.settings import ReconcileSettings
from reconciler.commands.standins import StandIns
from reconciler.commands.station import Station
from reconciler.commands.targets import Kubeconfigs
from reconciler.controllers.awaited import Awaited
from reconciler.controllers.clusterparts import Clusters, cluster_loops
from reconciler.controllers.feed import Feed
from reconciler.controllers.housekeeping import housekeeping
from reconciler.controllers.manager import CAREFUL, LOCAL, Manager
from reconciler.controllers.notices import Notices
from reconciler.controllers.settings import HousekeepingSettings, TargetSettings
from reconciler.controllers.tokensecrets import TokenSecrets
from reconciler.controllers.workspaceparts import workspace_loops
from reconciler.loading.declared import Declarations
from reconciler.loading.identities import Identities
from reconciler.loading.placed import Placed
from reconciler.syncing.lease import Contender
from reconciler.syncing.service import Syncing
from reconciler.syncing.settings import SyncSettings
from reconciler.syncing.upstream import Item, Past

_NAMESPACES_LINGER = 2.0
"""Seconds; see HousekeepingSettings."""


class Loops:
    """`start` once the store may be written to, `stop` before it is closed."""

    def __init__(
        self,
        station: Station,
        durable: Callable[[int], None],
        busy: Callable[[], bool],
        barred: Callable[[], str],
        contender: Contender,
    ) -> None:
        """`durable`: see Syncing. `busy`: whether commits are being loaded. `barred`: why no cluster may be written to
        just now, "" if it may. `contender`: as whom real ones are."""
        settings, store, roles = station.settings, station.handles.controllers, station.roles
        keys = Keys(settings.keys_dir)
        bundle = keys.ca.read_text()
        bounds = HousekeepingSettings(settings.events, settings.history, _NAMESPACES_LINGER)
        self._feed = feed = Feed(store)
        secrets = TokenSecrets(store, TokenSigner(keys), bundle, lambda name: name)
        self._standins = StandIns(
            store,
            settings.data_dir / "targets",
            keys,
            sync=settings.sync_writes,
            on=lambda target: roles.on(Work.CONTROLLERS, target),
        )
        self._managers: tuple[Manager, ...] = (
            housekeeping(feed, Catalog(store).kinds, bounds, busy),
            cluster_loops(feed, Clusters.of_workspaces(store), bundle, busy),
            Manager("tokensecrets", [secrets], feed, CAREFUL, busy),
            Manager("awaited", [Awaited(store)], feed, CAREFUL, busy),
            Manager("workspaces", workspace_loops(store, Identities(settings.keys_dir / "identities")), feed, LOCAL),
            Manager("stand-ins", [self._standins], feed),
        )
        self._announcing = Announcing(settings, store, feed, station.teller.note)
        notices = Notices(store, station.teller.happened)
        self._managers += (Manager("notices", [notices], feed, busy=busy),)
        past, targets, credentials = _past(station), _targets(settings), _credentials(station)
        self._syncing = Syncing(
            feed,
            SyncSettings(targets=targets),
            credentials,
            durable,
            past,
            lambda: barred() or roles.why(Work.SYNCING, store),
            contender,
            store=station.handles.syncing,
            happened=notices.say,
            keeping=KeptKubeconfigs(station.handles.syncing, settings.keys_dir),
        )
        self.syncers = self._syncing.syncers

    def start(self) -> None:
        for manager in self._managers:
            manager.start()
        self._announcing.start()
        self._syncing.start()
        self._feed.start()

    def stop(self) -> None:
        self._feed.stop()
        self._announcing.stop()
        self._syncing.stop()
        for manager in reversed(self._managers):
            manager.stop()
        self._standins.end()


def _past(station: Station) -> Past:
    store, repositories, renders = station.store, station.mirror.repositories, station.renders
    declarations, placed = Declarations(store, repositories, renders), Placed(store, repositories, renders)

    def declared(path: str, commit: CommitRef, item: Item) -> bool:
        return declarations.declared(path, commit, item.kind.group, item.kind.resource, item.namespace, item.name)

    return Past(declared, placed.withdrawn, repositories.follows)


def _targets(settings: ReconcileSettings) -> TargetSettings:
    return TargetSettings(heartbeat=settings.heartbeat, threshold=settings.threshold, tolerance=settings.tolerance)


def _credentials(station: Station) -> Kubeconfigs:
    settings = station.settings
    keys, among = Keys(settings.keys_dir), settings.among_proxies
    return Kubeconfigs(station.store, keys, settings.local_url, settings.trusted_targets, among_proxies=among)
