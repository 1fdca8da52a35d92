"""Programs that act on workspaces where writes are commits: that one is done is none, what it writes is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.apifleet import WORKSPACES, ApiFleet
from support.commitfleet import WRITES_COMMIT

from apiserver.registry import tree

ROOT = "workspaces/root"
CLUSTERS = "/apis/core.kcp.io/v1alpha1/logicalclusters"
MAPS = "/api/v1/namespaces/default/configmaps"
MERGE = "application/merge-patch+json"
DIRECTORY = f"{ROOT}/a/shop"


def kind(name: str, **spec: Any) -> str:
    said = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "WorkspaceType", "metadata": {"name": name}}
    return json.dumps({**said, "spec": spec})


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[ApiFleet]:
    made = ApiFleet(tmp_path / "fleet")
    made.begin({"treeplane.yaml": WRITES_COMMIT, f"{ROOT}/gold.json": kind("gold", initializer=True, terminator=True)})
    made.serve()
    yield made
    made.close()


def through(fleet: ApiFleet, view: str, method: str, rest: str, body: Any = b"", kind: str = "application/json") -> Any:
    program, cluster = f"{fleet.record('root').cluster}:gold", fleet.record("root:a:shop").cluster
    return fleet.ask(method, f"/services/{view}/{program}/clusters/{cluster}{rest}", body, kind=kind)


def done(fleet: ApiFleet, view: str, field: str) -> None:
    said = {"status": {field: []}}
    assert through(fleet, view, "PATCH", f"{CLUSTERS}/cluster/status", said, MERGE).status == 200


def phase(fleet: ApiFleet) -> str:
    return str(fleet.workspace("root:a:shop")["status"]["phase"])


def test_from_its_creation_to_its_end(fleet: ApiFleet, tmp_path: Path) -> None:
    made = fleet.make("root:a:shop", {"type": {"name": "gold", "path": "root"}})
    assert (made.status, made.json["status"]["phase"]) == (201, "Initializing")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made"}}
    assert through(fleet, "initializingworkspaces", "POST", MAPS, body).status == 201
    assert f"{DIRECTORY}/_objects/default/configmaps/made.yaml" in fleet.tree()
    head = fleet.repo.head
    done(fleet, "initializingworkspaces", "initializers")
    assert (phase(fleet), fleet.repo.head) == ("Ready", head)
    assert fleet.call("DELETE", "root:a", f"{WORKSPACES}/shop").status == 200
    fleet.settle()
    assert phase(fleet) == "Terminating"
    assert not [path for path in fleet.tree() if path.startswith(DIRECTORY)]
    fleet.publish()
    other = ApiFleet(tmp_path / "other", repo=fleet.repo, keys=fleet.keys)
    try:
        other.load(other.recorded())
        for each in (fleet, other):
            assert phase(each) == "Terminating"
            assert through(each, "terminatingworkspaces", "GET", f"{MAPS}/made").status == 200
            done(each, "terminatingworkspaces", "terminators")
            each.settle()
            assert tree.workspace_at(each.store, "root:a:shop") is None
    finally:
        other.close()
