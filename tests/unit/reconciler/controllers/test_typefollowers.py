"""What changes of a WorkspaceType once workspaces have it that were made through the API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.apifleet import LAB_TYPE, LAB_YAML, WIDGETS, ApiFleet

from apiserver.model.tables import Table
from apiserver.registry.lifecycles import PHASE

APIS = "/apis/apis.kcp.io/v1alpha2"
TYPES = "/apis/tenancy.kcp.io/v1alpha1/workspacetypes"
MERGE = "application/merge-patch+json"
ONE, TWO = "root:lab:one", "root:lab:two"


def workspace_type(name: str, **spec: Any) -> Any:
    return {
        "apiVersion": "tenancy.kcp.io/v1alpha1",
        "kind": "WorkspaceType",
        "metadata": {"name": name},
        "spec": spec,
    }


def brings(*exports: str, lifecycle: str = "Maintain", **more: Any) -> Any:
    bindings = [{"path": "root:lab", "export": name} for name in exports]
    return {"defaultAPIBindings": bindings, "defaultAPIBindingLifecycle": lifecycle, **more}


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[ApiFleet]:
    """root:lab takes writes, offers widgets, and has the type `base` and `gold`, which extends it."""
    made = ApiFleet(tmp_path / "fleet")
    made.begin({"workspaces/root/types.yaml": LAB_TYPE, "workspaces/root/lab/workspace.yaml": LAB_YAML})
    resource = {"name": "widgets", "group": "example.io", "schema": WIDGETS["metadata"]["name"], "storage": {"crd": {}}}
    export = {
        "apiVersion": "apis.kcp.io/v1alpha2",
        "kind": "APIExport",
        "metadata": {"name": "widgets"},
        "spec": {"resources": [resource]},
    }
    post(made, "/apis/apis.kcp.io/v1alpha1/apiresourceschemas", WIDGETS)
    post(made, f"{APIS}/apiexports", export)
    post(made, TYPES, workspace_type("base"))
    post(made, TYPES, workspace_type("gold", extend={"with": [{"name": "base", "path": "root:lab"}]}))
    post(made, TYPES, workspace_type("other"))
    for path, name in ((ONE, "gold"), (TWO, "other")):
        assert made.make(path, {"type": {"name": name, "path": "root:lab"}}).status == 201
    made.settle()
    yield made
    made.close()


def post(fleet: ApiFleet, path: str, obj: Any) -> None:
    reply = fleet.call("POST", "root:lab", path, obj)
    assert reply.status == 201, reply.message
    fleet.settle()


def change(fleet: ApiFleet, path: str, **spec: Any) -> None:
    reply = fleet.call("PATCH", "root:lab", path, {"spec": spec}, kind=MERGE)
    assert reply.status == 200, reply.message
    fleet.settle()


def bindings(fleet: ApiFleet, path: str) -> dict[str, Any]:
    """By the export's name."""
    found = fleet.call("GET", path, f"{APIS}/apibindings").json["items"]
    return {each["spec"]["reference"]["export"]["name"]: each for each in found}


@pytest.mark.parametrize("kind", ["base", "gold"])
def test_a_maintained_binding_comes_to_who_is_there(fleet: ApiFleet, kind: str) -> None:
    assert bindings(fleet, ONE) == {}
    change(fleet, f"{TYPES}/{kind}", **brings("widgets"))
    [binding] = bindings(fleet, ONE).values()
    assert binding["status"]["phase"] == "Bound"
    assert fleet.call("GET", ONE, "/apis/example.io/v1/widgets").status == 200
    assert bindings(fleet, TWO) == {}, "of another type"
    assert fleet.listed()[ONE] == {("root:lab", "widgets")}
    change(fleet, f"{TYPES}/{kind}", defaultAPIBindings=None)
    assert list(bindings(fleet, ONE)) == ["widgets"], "none goes with its type"


def test_a_type_that_a_commit_changes_counts_as_well(fleet: ApiFleet) -> None:
    declared = json.dumps(workspace_type("git", additionalWorkspaceLabels={"tier": "one"}))
    fleet.commit({"workspaces/root/git.json": declared})
    assert fleet.make("root:lab:three", {"type": {"name": "git", "path": "root"}}).status == 201
    declared = json.dumps(workspace_type("git", additionalWorkspaceLabels={"tier": "two"}))
    fleet.commit({"workspaces/root/git.json": declared})
    fleet.settle()
    assert labels(fleet, "root:lab:three") == {"tier": "two"}


def test_one_that_comes_with_workspaces_alone_does_not(fleet: ApiFleet) -> None:
    change(fleet, f"{TYPES}/gold", **brings("widgets", lifecycle="InitializeOnly"))
    assert bindings(fleet, ONE) == {}


def test_a_maintained_binding_accepts_what_its_export_claims_by_now(fleet: ApiFleet) -> None:
    change(fleet, f"{TYPES}/gold", **brings("widgets"))
    claim = {"group": "", "resource": "configmaps", "verbs": ["get"]}
    change(fleet, f"{APIS}/apiexports/widgets", permissionClaims=[claim])
    [binding] = bindings(fleet, ONE).values()
    [accepted] = binding["spec"]["permissionClaims"]
    assert (accepted["resource"], accepted["state"], binding["metadata"]["generation"]) == ("configmaps", "Accepted", 2)
    assert [each["resource"] for each in binding["status"]["appliedPermissionClaims"]] == ["configmaps"]


def test_a_default_binding_follows_its_export(fleet: ApiFleet) -> None:
    change(fleet, f"{TYPES}/gold", **brings("widgets"))
    schema = {**WIDGETS, "metadata": {"name": "v2.widgets.example.io"}}
    post(fleet, "/apis/apis.kcp.io/v1alpha1/apiresourceschemas", schema)
    resource = {"name": "widgets", "group": "example.io", "schema": "v2.widgets.example.io", "storage": {"crd": {}}}
    change(fleet, f"{APIS}/apiexports/widgets", resources=[resource])
    [binding] = bindings(fleet, ONE).values()
    assert [each["schema"]["name"] for each in binding["status"]["boundResources"]] == ["v2.widgets.example.io"]


def labels(fleet: ApiFleet, path: str) -> dict[str, str]:
    found = dict(fleet.workspace(path)["metadata"].get("labels") or {})
    found.pop(PHASE, None)
    return found


def test_labels_follow_the_type_where_nobody_says_otherwise(fleet: ApiFleet) -> None:
    change(fleet, f"{TYPES}/gold", additionalWorkspaceLabels={"tier": "gold", "team": "none"})
    assert labels(fleet, ONE) == {"tier": "gold", "team": "none"}
    said = {"metadata": {"labels": {"team": "a"}}}
    path = f"/apis/tenancy.kcp.io/v1alpha1/workspaces/{ONE.rpartition(':')[2]}"
    assert fleet.call("PATCH", "root:lab", path, said, kind=MERGE).status == 200
    change(fleet, f"{TYPES}/gold", additionalWorkspaceLabels={"tier": "platinum", "team": "all"})
    assert labels(fleet, ONE) == {"tier": "platinum", "team": "a"}
    change(fleet, f"{TYPES}/gold", additionalWorkspaceLabels=None)
    assert labels(fleet, ONE) == {"team": "a"}
    assert labels(fleet, TWO) == {}


def test_nothing_changes_with_what_does_not_matter_and_nothing_is_left(fleet: ApiFleet) -> None:
    change(fleet, f"{TYPES}/gold", **brings("widgets", additionalWorkspaceLabels={"tier": "gold"}))
    before = fleet.store.revision()
    change(fleet, f"{TYPES}/gold", defaultChildWorkspaceType={"name": "other", "path": "root:lab"})
    assert fleet.store.revision() == before + 1
    assert fleet.call("DELETE", "root:lab", f"{TYPES}/gold").status == 200
    fleet.settle()
    assert (labels(fleet, ONE), list(bindings(fleet, ONE))) == ({"tier": "gold"}, ["widgets"])
    fleet.unmake(ONE)
    fleet.unmake(TWO)
    fleet.settle()
    assert fleet.store.scan_rows(Table.TYPED) == []
