"""Which resources a target supports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apiserver.model.keys import Key
from apiserver.model.kinds import GroupResource
from apiserver.registry import codec, tree
from apiserver.registry.exportspec import schema_names
from apiserver.registry.objects import Objects
from apiserver.storage.lmdb import open_store
from apiserver.storage.protocol import Put
from reconciler.syncing.exports import offered


def _resource(schema: str) -> dict[str, str]:
    group, resource = schema_names(schema)
    return {"name": resource, "group": group, "schema": schema}


@pytest.fixture
def objects(tmp_path: Path) -> Any:
    store = open_store(tmp_path, sync=False)
    exports = {"compute0": ("kubernetes", ["v1-36.services.core", "v1-36.deployments.apps"], "k"),
               "infra0": ("widgets", ["v1.widgets.example.io"], "w")}  # fmt: skip
    for path, cluster in (("root:compute", "compute0"), ("root:infra", "infra0")):
        name, schemas, identity = exports[cluster]
        record = tree.WorkspaceRecord(path, cluster, "root")
        export = {"metadata": {"name": name}, "spec": {"resources": [_resource(schema) for schema in schemas]},
                  "status": {"identityHash": identity}}  # fmt: skip
        store.write(
            tree.put_workspace(record),
            tree.placed(record),
            Put(Key("apiexports.apis.kcp.io", cluster, "", name), codec.encode(export)),
        ).result()
    yield Objects(store)
    store.close()


def target(*exports: dict[str, str]) -> dict[str, Any]:
    spec = {"supportedAPIExports": list(exports)} if exports else {}
    return {"metadata": {"name": "t", "annotations": {"kcp.io/cluster": "infra0"}}, "spec": spec}


SERVICES, DEPLOYMENTS = GroupResource("", "services"), GroupResource("apps", "deployments")
WIDGETS = GroupResource("example.io", "widgets")


def test_kubernetes_by_default(objects: Objects) -> None:
    assert offered(objects, target()) == {SERVICES: "k", DEPLOYMENTS: "k"}
    assert offered(objects, target({"export": "kubernetes"})) == {SERVICES: "k", DEPLOYMENTS: "k"}


def test_those_that_the_spec_names(objects: Objects) -> None:
    assert offered(objects, target({"export": "widgets"})) == {WIDGETS: "w"}
    both = offered(
        objects, target({"path": "root:infra", "export": "widgets"}, {"path": "root:nowhere", "export": "x"})
    )
    assert both == {WIDGETS: "w"}
