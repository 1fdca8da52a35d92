"""One stand-in for each embedded sync target, in step with the SyncTargets that there are.

A start has to begin each of them, so it sees every SyncTarget.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from apiserver.auth.accounts import TARGET_PREFIX
from apiserver.auth.keys import Keys
from apiserver.auth.pki import TokenSigner
from apiserver.model.keys import Key
from apiserver.model.storagenames import SYNC_TARGETS
from apiserver.registry import tree
from apiserver.registry.objects import Objects
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.protocol import Store
from apiserver.stores import open_serving
from reconciler.commands.targets import is_embedded
from reconciler.controllers.clusterparts import Clusters, cluster_loops
from reconciler.controllers.controller import Controller
from reconciler.controllers.entry import Entry
from reconciler.controllers.feed import Feed
from reconciler.controllers.manager import CAREFUL, Manager
from reconciler.controllers.served import anywhere
from reconciler.controllers.tokensecrets import TokenSecrets
from reconciler.standin import StandIn


@dataclass(frozen=True, slots=True)
class _Running:
    store: Store
    feed: Feed
    standin: StandIn
    managers: tuple[Manager, ...]

    def start(self) -> None:
        self.standin.start()
        for manager in self.managers:
            manager.start()
        self.feed.start()

    def end(self) -> None:
        self.feed.stop()
        for manager in self.managers:
            manager.stop()
        self.standin.stop()
        self.store.close()


class StandIns(Controller[Key]):
    """Work items are SyncTargets' keys. `directory` is `targets/` of the data directory. A target's store stays when
    its SyncTarget goes; in a workspace that was made through the API it goes with that. `on`: as who writes to such a
    store."""

    name = "stand-ins"
    resources = frozenset({SYNC_TARGETS})

    def __init__(
        self,
        store: Store,
        directory: Path,
        keys: Keys,
        *,
        sync: bool = True,
        on: Callable[[Store], Store] = lambda store: store,
    ) -> None:
        self._store, self._on = store, on
        self._signer, self._bundle = TokenSigner(keys), keys.ca.read_text()
        self._directory = directory
        self._sync = sync
        self._running: dict[Key, _Running] = {}

    def begin(self) -> None:
        """What such workspaces left that went while nobody looked."""
        for found in self._directory.glob("*:*"):
            if tree.is_left(self._store, found.name):
                shutil.rmtree(found)

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        yield entry.key

    def reconcile(self, key: Key) -> None:
        target = Objects(self._store).get(key)
        running = self._running.get(key)
        if target is None:
            if running is not None:
                del self._running[key]
                running.end()
            if tree.is_left(self._store, place := f"{key.cluster}:{key.name}"):
                shutil.rmtree(self._directory / place, ignore_errors=True)
            return
        workspace = tree.workspace_of(self._store, key.cluster)
        if workspace is None or running is not None or not is_embedded(target):
            return
        made = self._running[key] = self._made(workspace, key.name)
        made.start()

    def end(self) -> None:
        """Once no key is reconciled any more."""
        for running in self._running.values():
            running.end()
        self._running.clear()

    def _made(self, workspace: WorkspaceRecord, target: str) -> _Running:
        store = open_serving(self._directory / tree.target_place(workspace, target), sync=self._sync)
        feed = Feed(self._on(store))
        secrets = TokenSecrets(
            feed.store, self._signer, self._bundle, lambda _: f"{TARGET_PREFIX}{workspace.path}:{target}"
        )
        tokens = Manager("tokensecrets", [secrets], feed, CAREFUL)
        cluster = cluster_loops(feed, Clusters.alike(anywhere), self._bundle)
        return _Running(store, feed, StandIn(feed), (tokens, cluster))
