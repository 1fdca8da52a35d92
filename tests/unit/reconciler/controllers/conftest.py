"""A store with a small fleet in it, and shorthands to write objects."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.following import Following
from support.targetloops import QUICK, Loops

from apiserver.model import marks
from apiserver.model.keys import Key
from apiserver.registry import codec, tree
from apiserver.registry.objects import Objects
from apiserver.storage.lmdb import open_store
from apiserver.storage.protocol import Delete, Put, Store
from apiserver.stores import DECLARED

GROUPS = {
    "synctargets": ("workload.kcp.io/v1alpha1", "SyncTarget"),
    "locations": ("scheduling.kcp.io/v1alpha1", "Location"),
    "placements": ("scheduling.kcp.io/v1alpha1", "Placement"),
    "namespaces": ("v1", "Namespace"),
    "secrets": ("v1", "Secret"),
    "persistentvolumeclaims": ("v1", "PersistentVolumeClaim"),
    "clusterroles": ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    "clusterrolebindings": ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
}


class Fleet:
    """Workspaces `root:infra` (cluster infra0) and `root:shop` (shop0), all loaded."""

    def __init__(self, store: Store) -> None:
        self.store, self.objects = store, Objects(store)
        for path, cluster in (("root", "root"), ("root:infra", "infra0"), ("root:shop", "shop0")):
            self.workspace(path, cluster)
        self.loaded(True)
        self.admit("infra0", ("Group", "system:workspaces:root"))

    def loaded(self, value: bool) -> None:
        """As a first load begins and ends: what it fills the store with is in no log, which begins behind it."""
        self.store.write(tree.put_fleet(tree.FleetRecord("fleet", value))).result()
        if value:
            self.store.fill(tree.placed(tree.WorkspaceRecord("root", "root", ""))).result()

    def workspace(self, path: str, cluster: str, **more: Any) -> None:
        record = tree.WorkspaceRecord(path, cluster, path.rpartition(":")[0], **more)
        self.store.write(tree.put_workspace(record), tree.placed(record)).result()

    def key(self, resource: str, cluster: str, name: str, namespace: str = "") -> Key:
        group = GROUPS[resource][0].rpartition("/")[0]
        return Key(f"{resource}.{group}" if group else resource, cluster, namespace, name)

    def put(self, resource: str, cluster: str, name: str, namespace: str = "", /, **content: Any) -> Key:
        """Write an object as git's loader does; `labels` goes into metadata."""
        key = self.key(resource, cluster, name, namespace)
        version, kind = GROUPS[resource]
        old = self.objects.get(key)
        metadata = {
            "name": name,
            "uid": old["metadata"]["uid"] if old else str(uuid.uuid4()),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": content.pop("labels", {}),
            "annotations": {marks.CLUSTER: cluster, marks.SOURCE_COMMIT: "c0ffee"},
        }
        if namespace:
            metadata["namespace"] = namespace
        if old:
            metadata["annotations"] = {**old["metadata"]["annotations"], **metadata["annotations"]}
            content.setdefault("status", old.get("status", {}))
        obj = {"apiVersion": version, "kind": kind, "metadata": metadata, **content}
        self.store.write(Put(key, codec.encode(obj))).result()
        return key

    def admit(self, cluster: str, *subjects: tuple[str, str], names: Sequence[str] = ()) -> None:
        """RBAC of a workspace gives `use` on its Locations (of these names; none: all) to these subjects alone."""
        rule = {"apiGroups": ["scheduling.kcp.io"], "resources": ["locations"], "verbs": ["use"]}
        self.put("clusterroles", cluster, "use", rules=[{**rule, "resourceNames": list(names)} if names else rule])
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "use"}
        listed = [{"apiGroup": "rbac.authorization.k8s.io", "kind": k, "name": n} for k, n in subjects]
        self.put("clusterrolebindings", cluster, "use", roleRef=role, subjects=listed)

    def delete(self, key: Key) -> None:
        self.store.write(Delete(key)).result()

    def get(self, key: Key) -> dict[str, Any]:
        found = self.objects.get(key)
        assert found is not None, f"{key} is not there"
        return found


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path / "store", declared=DECLARED, sync=False)
    yield opened
    opened.close()


@pytest.fixture
def fleet(store: Store) -> Fleet:
    return Fleet(store)


@pytest.fixture
def written(store: Store) -> Callable[[int], list[Key]]:
    """The keys written since a revision."""
    return lambda since: [c.key for c in store.changes(since)]


@pytest.fixture(scope="session")
def settle() -> Callable[[Following], None]:
    """Lets controllers that were not started do all there is to do now, in this thread."""
    return lambda following: following.settle()


@pytest.fixture
def loops(fleet: Any) -> Iterator[Loops]:
    made = Loops(fleet)
    yield made
    made.stop()


@pytest.fixture
def quick(fleet: Any) -> Iterator[Loops]:
    """Loops that soon take a target for silent."""
    made = Loops(fleet, QUICK)
    yield made
    made.stop()
