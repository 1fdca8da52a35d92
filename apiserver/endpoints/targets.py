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
from apiserver.model.storagenames import SYNC_TARGETS
from apiserver.registry.tree import target_place, workspace_at
from apiserver.storage.protocol import Store


class EmbeddedTargets:
    """`open_store` gets a directory; `catalog` makes the kinds of a target's store."""

    def __init__(
        self, store: Store, directory: Path, open_store: Callable[[Path], Store], catalog: Callable[[Store], RealmKinds]
    ) -> None:
        self._store = store
        self._directory = directory
        self._open = open_store
        self._catalog = catalog
        self._realms: dict[str, tuple[str, Realm]] = {}
        """By the target's name in URLs, each with the place of its store: another one where another workspace stands
        at the path by now."""
        self._lock = threading.Lock()

    def realm(self, workspace: str, name: str) -> Realm | None:
        """None if there is no such target."""
        key = f"{workspace}:{name}"
        place = self._place(workspace, name)
        with self._lock:
            at, found = self._realms.get(key, ("", None))
        if found is not None and at != place:
            self._drop(key)
        if not place:
            return None
        with self._lock:
            if key not in self._realms:
                store = self._open(self._directory / place)
                authorizer = Authorizer(store, f"{TARGET_PREFIX}{key}")
                self._realms[key] = place, Realm(store, self._catalog(store), authorizer)
            return self._realms[key][1]

    def end_watches(self) -> None:
        """Other requests go on. For a process that is told to stop."""
        with self._lock:
            for _, realm in self._realms.values():
                realm.hub.close()

    def close(self) -> None:
        """Closes every store that was opened."""
        with self._lock:
            for _, realm in self._realms.values():
                realm.hub.close()
                realm.store.close()
            self._realms.clear()

    def _drop(self, key: str) -> None:
        with self._lock:
            _, gone = self._realms.pop(key, ("", None))
        if gone is not None:
            gone.hub.close()
            gone.store.close()

    def _place(self, workspace: str, name: str) -> str:
        """ "" if there is no such target."""
        found = workspace_at(self._store, workspace)
        target = self._store.get(Key(SYNC_TARGETS, found.cluster, "", name)) if found is not None else None
        if found is None or target is None:
            return ""
        spec = orjson.loads(target.value).get("spec") or {}
        return target_place(found, name) if "embedded" in (spec.get("connection") or {}) else ""


class NoTargets:
    """For a server without embedded targets."""

    def realm(self, workspace: str, name: str) -> Realm | None:  # noqa: ARG002
        return None
