"""What the controllers read at a start does not follow the fleet: they go on where they were."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.countedstore import CountedStore
from support.following import Following
from support.loadedfleet import A, LoadedFleet, configmap

from apiserver.auth.pki import TokenSigner, ensure_keys
from apiserver.model.keys import Key
from apiserver.model.tables import Table
from apiserver.registry.catalog import Catalog
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Delete
from reconciler.controllers import entry as entries
from reconciler.controllers.clusterparts import Clusters, cluster_loops
from reconciler.controllers.feed import Feed
from reconciler.controllers.housekeeping import housekeeping
from reconciler.controllers.manager import CAREFUL, Manager
from reconciler.controllers.tokensecrets import TokenSecrets

COMPAT = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\nspec: {type: {name: kube-compat, path: root}}\n"


@pytest.fixture
def process(fleet: LoadedFleet, tmp_path: Any) -> Callable[[], tuple[CountedStore, list[Manager], Feed]]:
    """Begins one: all that a server runs for a store beside syncing, not started."""
    signer = TokenSigner(ensure_keys(tmp_path / "keys"))

    def begin() -> tuple[CountedStore, list[Manager], Feed]:
        store: Any = CountedStore(fleet.store)
        feed = Feed(store)
        managers = [
            housekeeping(feed, Catalog(store).kinds),
            cluster_loops(feed, Clusters.of_workspaces(store), "the CA"),
            Manager("tokensecrets", [TokenSecrets(store, signer, "the CA", str)], feed, CAREFUL),
        ]
        return store, managers, feed

    return begin


def settle(managers: list[Manager]) -> None:
    for _ in range(3):  # what one writes another may have to look at
        for manager in managers:
            manager.settle()


def test_a_start_with_nothing_new_reads_no_object_and_writes_nothing(
    fleet: LoadedFleet, process: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet.commit({f"{A}/c{n}.yaml": configmap(f"c{n}") for n in range(5)} | {f"{A}/k/workspace.yaml": COMPAT})
    store, managers, feed = process()
    settle(managers)
    assert len(store.rows) > 100, "the first one sees all"
    feed.save()
    decoded: list[bytes] = []
    monkeypatch.setattr(entries, "decode", decoded.append)
    revision = fleet.store.revision()
    store, managers, feed = process()
    settle(managers)
    feed.save()
    assert (store.rows, store.entries, decoded, fleet.store.revision()) == ([], [], [], revision)


def test_what_happened_while_no_server_ran_is_worked_off(fleet: LoadedFleet, process: Any) -> None:
    """Garbage whose owner went, an object that is held in a namespace which goes, its end after a second start."""
    objects, cluster = Objects(fleet.store), fleet.record("root:a").cluster
    space = Key("namespaces", cluster, "", "made")
    objects.create(space, {"kind": "Namespace", "apiVersion": "v1", "metadata": {}}, runtime=True)
    owner = Key("configmaps", cluster, "made", "owner")
    made = objects.create(owner, {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {}}, runtime=True)
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": made["metadata"]["uid"]}
    child, held = Key("configmaps", cluster, "made", "child"), Key("configmaps", cluster, "made", "held")
    for key, metadata in ((child, {"ownerReferences": [reference]}), (held, {"finalizers": ["x.io/hold"]})):
        objects.create(key, {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata}, runtime=True)
    _, managers, feed = process()
    settle(managers)
    feed.save()
    assert all(fleet.store.get_many([child, held]))
    fleet.store.write(Delete(owner)).result()
    store, managers, feed = process()
    settle(managers)
    feed.save()
    assert (fleet.store.get(child), store.rows.count("configmaps")) == (None, 0)
    dying = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0}
    objects.update(held, lambda o: {**o, "metadata": {**o["metadata"], **dying}})
    fleet.store.write(Delete(space)).result()
    _, managers, feed = process()
    settle(managers)
    feed.save()
    # Made anew meanwhile: what is in it now is another namespace's.
    objects.create(space, {"kind": "Namespace", "apiVersion": "v1", "metadata": {}}, runtime=True)
    new = Key("configmaps", cluster, "made", "new")
    objects.create(new, {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {}}, runtime=True)
    fleet.store.write(Delete(held)).result()
    assert len(fleet.store.scan_rows(Table.GONE_NAMESPACES)) == 1
    _, managers, feed = process()
    settle(managers)
    assert (fleet.store.scan_rows(Table.GONE_NAMESPACES), bool(fleet.store.get(new))) == ([], True)


def test_an_owner_that_waits_for_its_dependents_goes_after_a_restart(fleet: LoadedFleet, process: Any) -> None:
    objects, cluster = Objects(fleet.store), fleet.record("root:a").cluster
    owner = Key("configmaps", cluster, "default", "owner")
    made = objects.create(owner, {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {}}, runtime=True)
    reference = {
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": made["metadata"]["uid"],
        "blockOwnerDeletion": True,
    }  # fmt: skip
    child = Key("configmaps", cluster, "default", "child")
    metadata = {"ownerReferences": [reference], "finalizers": ["x.io/hold"]}
    objects.create(child, {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata}, runtime=True)
    dying = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["foregroundDeletion"]}
    objects.update(owner, lambda o: {**o, "metadata": {**o["metadata"], **dying}})
    _, managers, feed = process()
    settle(managers)
    feed.save()
    assert all(fleet.store.get_many([owner, child]))
    fleet.store.write(Delete(child)).result()
    _, managers, feed = process()
    settle(managers)
    assert fleet.store.get(owner) is None


def test_following_goes_on_where_it_was_killed(fleet: LoadedFleet, eventually: Any) -> None:
    """With its threads: what is not saved is looked at again, and all of it is done."""
    following = Following(fleet.store, lambda feed: housekeeping(feed, Catalog(fleet.store).kinds))
    following.start()
    eventually(lambda: following.idle)
    following.stop()
    store: Any = CountedStore(fleet.store)
    again = Following(store, lambda feed: housekeeping(feed, Catalog(store).kinds))
    again.start()
    eventually(lambda: again.idle)
    again.stop()
    assert store.rows == []
