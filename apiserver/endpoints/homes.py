"""Where the ServiceAccounts of a world are: by what tokens call it, its store. Wired in by serve.py."""

from __future__ import annotations

from apiserver.auth.accounts import TARGET_PREFIX, Home, Homes
from apiserver.endpoints.realms import TARGET_CLUSTER, Kinds, Targets, loading
from apiserver.registry.tree import fleet
from apiserver.storage.protocol import Store


def homes(store: Store, catalog: Kinds, targets: Targets) -> Homes:
    """A workspace's accounts are in `store`; an embedded target's in its own."""

    def absent() -> None:
        at = fleet(store)
        if not at.loaded:
            raise loading(at)

    def home(identity: str) -> Home | None:
        if not identity.startswith(TARGET_PREFIX):
            return Home(store, identity, catalog.kinds(identity), absent)
        workspace, _, name = identity.removeprefix(TARGET_PREFIX).rpartition(":")
        realm = targets.realm(workspace, name) if workspace else None
        if realm is None:
            absent()
            return None
        return Home(realm.store, TARGET_CLUSTER, realm.catalog.kinds(TARGET_CLUSTER))

    return home
