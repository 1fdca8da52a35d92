"""A source repository, its mirror, a store, and shorthands to write into the store what loading would."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.fleetrepo import TREEPLANE_YAML, FleetRepo

from apiserver.model import marks
from apiserver.model.commits import own
from apiserver.model.keys import Key
from apiserver.model.storagenames import WORKSPACES
from apiserver.registry import codec, tree
from apiserver.storage.lmdb import open_store
from apiserver.storage.protocol import Delete, Put, Store
from apiserver.stores import DECLARED
from reconciler.plan.summary import Summary
from reconciler.repository.mirror import Mirror

Object = dict[str, Any]

DEPLOYMENTS, BINDINGS = "deployments.apps:9f86", "apibindings.apis.kcp.io"


class Served:
    """A store that serves commits of a fleet: workspaces, summaries and objects are put into it one by one."""

    def __init__(self, store: Store, commit: str) -> None:
        self.store = store
        self.commit = commit
        self.fleet(commit)

    def fleet(self, commit: str, error: str = "", arriving: tuple[str, ...] = ()) -> None:
        self.commit = commit
        record = tree.FleetRecord("fleet-id", True, own(commit), error=error, arriving=tuple(map(own, arriving)))
        self.store.write(tree.put_fleet(record)).result()

    def workspace(
        self,
        path: str,
        cluster: str,
        directory: str | None = None,
        *,
        log: bool = True,
        head: str = "",
        origin: str = "",
    ) -> None:
        where = "workspaces/" + path.replace(":", "/") if directory is None else directory
        parent = path.rpartition(":")[0]
        record = tree.WorkspaceRecord(path, cluster, parent, directory=where, head=own(head), origin=own(origin))
        if path != "root":
            annotations = {marks.SOURCE_PATH: f"{where}/workspace.yaml"} if where else {}
            self.put(WORKSPACES, "root", path, namespace="", annotations=annotations, spec={"cluster": cluster})
        write = self.store.write if log else self.store.fill
        there = self.store.get(tree.cluster_key(cluster))
        if there is None or tree.directory_of(there.value) != where:
            write(tree.placed(record)).result()
        write(tree.put_workspace(record, tree.summary(self.store, path))).result()
        self.summary(cluster, Summary(own(self.commit)))

    def bind(self, cluster: str) -> None:
        """As loading leaves a binding: what makes Deployments known to the workspace."""
        bound = {"group": "apps", "resource": "deployments", "schema": {"name": "s", "identityHash": "9f86"}}
        self.put(BINDINGS, cluster, "kubernetes", namespace="", status={"boundResources": [bound]})

    def remove(self, path: str, cluster: str) -> None:
        """In the order of loading: objects first, the record last."""
        keys = [r.key for r in self.store.scan(DEPLOYMENTS, cluster).records]
        keys += [r.key for r in self.store.scan(BINDINGS, cluster).records]
        keys.append(Key(WORKSPACES, "root", "", path))
        record = tree.workspace_at(self.store, path)
        assert record is not None
        self.store.write(*(Delete(key) for key in keys), *tree.forgotten(record)).result()

    def summary(self, cluster: str, summary: Summary) -> None:
        """A row beside an object that changes: by itself it is in no log."""
        beside = Put(Key("events", cluster, "default", "beside"), b'{"metadata":{}}')
        record = tree.workspace_of(self.store, cluster)
        assert record is not None
        self.store.write(beside, tree.put_workspace(record, summary.as_json())).result()

    def put(
        self, resource: str, cluster: str, name: str, *, namespace: str = "default", log: bool = True, **content: Any
    ) -> Key:
        key = Key(resource, cluster, namespace, name)
        annotations = content.pop("annotations", {})
        metadata = {"name": name, "namespace": namespace, "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
        metadata["annotations"] = annotations
        obj = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, **content}
        (self.store.write if log else self.store.fill)(Put(key, codec.encode(obj))).result()
        return key


@pytest.fixture
def source(tmp_path: Path) -> FleetRepo:
    made = FleetRepo(tmp_path / "source.git")
    made.commit({"treeplane.yaml": TREEPLANE_YAML, "workspaces/root/a.yaml": ""})
    return made


@pytest.fixture
def mirror(source: FleetRepo, tmp_path: Path) -> Mirror:
    return Mirror(tmp_path / "data", str(source.path), "main", "treeplane/status")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path / "store", sync=False, declared=DECLARED)
    yield opened
    opened.close()


@pytest.fixture
def served(store: Store, source: FleetRepo) -> Served:
    made = Served(store, source.head)
    made.workspace("root", "root")
    made.workspace("root:web", "webcluster000000")
    made.bind("webcluster000000")
    return made
