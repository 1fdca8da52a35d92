"""One stand-in for each embedded sync target, in step with the SyncTargets that there are."""

from __future__ import annotations

from pathlib import Path

import orjson

from apiserver.auth.accounts import TARGET_PREFIX
from apiserver.auth.keys import Keys
from apiserver.auth.pki import Signer
from apiserver.model import marks
from apiserver.registry import tree
from apiserver.storage.lmdb import open_store
from apiserver.storage.protocol import Change, Store
from apiserver.stores import MARKED
from reconciler.commands.targets import is_embedded
from reconciler.controllers.clusterparts import cluster_loops
from reconciler.controllers.follower import Follower
from reconciler.controllers.runtime import Informer
from reconciler.controllers.tokensecrets import token_secrets
from reconciler.standin import StandIn

SYNC_TARGETS = "synctargets.workload.kcp.io"


class StandIns:
    """`directory` is `targets/` of the data directory. A target's store stays when its SyncTarget goes."""

    def __init__(self, store: Store, directory: Path, keys: Keys, *, sync: bool = True) -> None:
        self._store = store
        self._signer, self._bundle = Signer(keys), keys.ca.read_text()
        self._directory = directory
        self._sync = sync
        self._running: dict[str, tuple[StandIn, tuple[Follower, ...], Store]] = {}

    def load(self, informer: Informer) -> None:
        """Start those there are, and follow changes."""
        informer.on(frozenset({SYNC_TARGETS}), self._changed)
        for record in self._store.scan(SYNC_TARGETS).records:
            self._consider(record.value)

    def stop(self) -> None:
        for running in self._running.values():
            _end(*running)
        self._running.clear()

    def _changed(self, change: Change) -> None:
        if change.value is not None:
            self._consider(change.value)
        elif change.previous is not None:
            self._leave(change.previous)

    def _consider(self, value: bytes) -> None:
        target = orjson.loads(value)
        name = self._name(target)
        if name is None or name in self._running or not is_embedded(target):
            return
        store = open_store(self._directory / name, marked=MARKED, sync=self._sync)
        standin = StandIn(store)
        standin.start()
        tokens = token_secrets(store, self._signer, self._bundle, lambda _: f"{TARGET_PREFIX}{name}")
        loops = cluster_loops(store, lambda _: True, self._bundle)
        for follower in (tokens, loops):
            follower.start()
        self._running[name] = (standin, (tokens, loops), store)

    def _leave(self, value: bytes) -> None:
        running = self._running.pop(self._name(orjson.loads(value)) or "", None)
        if running is not None:
            _end(*running)

    def _name(self, target: dict[str, object]) -> str | None:
        metadata = target["metadata"]
        assert isinstance(metadata, dict)
        record = tree.workspace_of(self._store, metadata["annotations"][marks.CLUSTER])
        return f"{record.path}:{metadata['name']}" if record else None


def _end(standin: StandIn, followers: tuple[Follower, ...], store: Store) -> None:
    for follower in followers:
        follower.stop()
    standin.stop()
    store.close()
