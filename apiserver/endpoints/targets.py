"""The embedded sync targets that this process serves: opened on the first request that names one.

A target exists while its SyncTarget (spec.connection.embedded) stands in its workspace; its store is a directory of its
own. One that was taken away is closed and its watches end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import orjson

from apiserver.auth.accounts import TARGET_PREFIX
from apiserver.auth.rbac import Authorizer
from apiserver.endpoints.judging import RealmKinds
from apiserver.endpoints.realms import Realm
from apiserver.model.keys import Key
from apiserver.registry.tree import workspace_at
from apiserver.storage.protocol import Store

SYNC_TARGETS = "synctargets.workload.kcp.io"


class EmbeddedTargets:
    """`open_store` gets a directory; `catalog` makes the kinds of a target's store."""

    def __init__(
        self, store: Store, directory: Path, open_store: Callable[[Path], Store], catalog: Callable[[Store], RealmKinds]
    ) -> None:
        self._store = store
        self._directory = directory
        self._open = open_store
        self._catalog = catalog
        self._realms: dict[str, Realm] = {}
        self._lock = threading.Lock()

    def realm(self, workspace: str, name: str) -> Realm | None:
        """None if there is no such target."""
        key = f"{workspace}:{name}"
        if not self._declared(workspace, name):
            self._drop(key)
            return None
        with self._lock:
            found = self._realms.get(key)
            if found is None:
                store = self._open(self._directory / key)
                authorizer = Authorizer(store, f"{TARGET_PREFIX}{key}")
                found = self._realms[key] = Realm(store, self._catalog(store), authorizer)
            return found

    def end_watches(self) -> None:
        """Other requests go on. For a process that is told to stop."""
        with self._lock:
            for realm in self._realms.values():
                realm.hub.close()

    def close(self) -> None:
        """Closes every store that was opened."""
        with self._lock:
            for realm in self._realms.values():
                realm.hub.close()
                realm.store.close()
            self._realms.clear()

    def _drop(self, key: str) -> None:
        with self._lock:
            gone = self._realms.pop(key, None)
        if gone is not None:
            gone.hub.close()
            gone.store.close()

    def _declared(self, workspace: str, name: str) -> bool:
        found = workspace_at(self._store, workspace)
        if found is None:
            return False
        target = self._store.get(Key(SYNC_TARGETS, found.cluster, "", name))
        if target is None:
            return False
        spec = orjson.loads(target.value).get("spec") or {}
        return "embedded" in (spec.get("connection") or {})


class NoTargets:
    """For a server without embedded targets."""

    def realm(self, workspace: str, name: str) -> Realm | None:  # noqa: ARG002
        return None
