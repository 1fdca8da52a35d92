"""Where the ServiceAccounts of a world are: by what tokens call it, its store. Wired in by serve.py."""

from __future__ import annotations

from apiserver.auth.accounts import TARGET_PREFIX, AccountHome, Homes
from apiserver.endpoints.judging import RealmKinds
from apiserver.endpoints.realms import TARGET_CLUSTER, Targets, loading
from apiserver.registry.tree import fleet
from apiserver.storage.protocol import Store


def homes(store: Store, catalog: RealmKinds, targets: Targets) -> Homes:
    """A workspace's accounts are in `store`; an embedded target's in its own."""

    def absent() -> None:
        at = fleet(store)
        if not at.loaded:
            raise loading(at)

    def home(identity: str) -> AccountHome | None:
        if not identity.startswith(TARGET_PREFIX):
            return AccountHome(store, identity, catalog.kinds(identity), absent)
        workspace, _, name = identity.removeprefix(TARGET_PREFIX).rpartition(":")
        realm = targets.realm(workspace, name) if workspace else None
        if realm is None:
            absent()
            return None
        return AccountHome(realm.store, TARGET_CLUSTER, realm.catalog.kinds(TARGET_CLUSTER))

    return home
