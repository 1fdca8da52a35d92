"""Proposals of objects that are more than a map: lists, computed objects, Workspaces, APIs."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from support.loadedfleet import A, configmap
from support.proposalfleet import ProposalFleet
from support.widgets import schema

from apiserver.model.errors import StatusError

ROLES = "clusterroles.rbac.authorization.k8s.io"
WORKSPACES = "workspaces.tenancy.kcp.io"
ROLE = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: viewer} # who looks
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get]}
"""


def rules(*resources: str) -> list[dict[str, Any]]:
    return [{"apiGroups": [""], "resources": [each], "verbs": ["get"]} for each in resources]


def said(fleet: ProposalFleet, path: str, workspace: str = "root:a") -> Any:
    return yaml.safe_load(fleet.proposed(workspace)[path] or "")


def test_a_list_is_changed_beside_a_label(fleet: ProposalFleet) -> None:
    fleet.commit({f"{A}/role.yaml": ROLE})
    metadata = {**fleet.get("root:a", ROLES, "viewer", "")["metadata"], "labels": {"a": "b"}}
    fleet.patched("root:a", ROLES, "viewer", metadata=metadata)
    fleet.patched("root:a", ROLES, "viewer", rules=rules("configmaps", "events"))
    found = said(fleet, f"{A}/role.yaml")
    assert (found["metadata"]["labels"], found["rules"]) == ({"a": "b"}, rules("configmaps", "events"))
    assert "# who looks" in (fleet.proposed()[f"{A}/role.yaml"] or "")
    fleet.merge()
    live = fleet.get("root:a", ROLES, "viewer", "")
    assert (live["metadata"]["labels"], live["rules"]) == ({"a": "b"}, rules("configmaps", "events"))


def test_a_field_that_is_taken_away_stays_away(fleet: ProposalFleet) -> None:
    fleet.commit({f"{A}/app.yaml": configmap(a="b", x="y")})
    fleet.patched("root:a", "configmaps", "app", data={"a": "b"})
    fleet.patched("root:a", "configmaps", "app", data={"a": "c", "x": "y"})
    assert said(fleet, f"{A}/app.yaml")["data"] == {"a": "c"}


def test_a_document_among_others_is_changed_in_its_place(fleet: ProposalFleet) -> None:
    both = f"# both\n{configmap('one')}---\n{configmap('two')}"
    fleet.commit({f"{A}/both.yaml": both})
    fleet.patched("root:a", "configmaps", "two", data={"a": "c"})
    assert fleet.proposed() == {f"{A}/both.yaml": f"# both\n{configmap('one')}---\n{configmap('two', a='c')}"}
    with pytest.raises(StatusError):
        fleet.deleted("root:a", "configmaps", "one")
    assert [each["metadata"]["name"] for each in yaml.safe_load_all(fleet.proposed()[f"{A}/both.yaml"] or "")] == [
        "two"
    ]


def test_what_no_file_declares_gets_one_and_keeps_it(fleet: ProposalFleet) -> None:
    """The namespace `default` comes with its workspace."""
    for labels in ({"a": "1"}, {"a": "1"}, {"a": "2"}):
        metadata = {**fleet.get("root:a", "namespaces", "default", "")["metadata"]}
        metadata["labels"] = {**metadata.get("labels", {}), **labels}
        fleet.patched("root:a", "namespaces", "default", metadata=metadata)
    [text] = fleet.proposed().values()
    [found] = yaml.safe_load_all(text or "")
    assert found["metadata"]["labels"]["a"] == "2"
    assert len(fleet.subjects()) == 2
    fleet.merge()
    assert fleet.get("root:a", "namespaces", "default", "")["metadata"]["labels"]["a"] == "2"


def test_an_empty_namespace_is_not_ended_before_that_is_merged(fleet: ProposalFleet) -> None:
    fleet.commit({f"{A}/shop.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"})
    with pytest.raises(StatusError, match="proposed on branch"):
        fleet.deleted("root:a", "namespaces", "shop")
    live = fleet.get("root:a", "namespaces", "shop", "")
    assert "deletionTimestamp" not in live["metadata"]
    assert live["status"]["phase"] == "Active"
    assert fleet.proposed() == {f"{A}/shop.yaml": None}


def test_a_workspace_changes_in_its_workspace_yaml(fleet: ProposalFleet) -> None:
    for labels in ({"a": "1"}, {"a": "1", "b": "2"}):
        metadata = {**fleet.get("root", WORKSPACES, "b", "")["metadata"]}
        metadata["labels"] = {**metadata.get("labels", {}), **labels}
        fleet.patched("root", WORKSPACES, "b", metadata=metadata)
    assert fleet.proposed("root").keys() == {"workspaces/root/b/workspace.yaml"}
    assert said(fleet, "workspaces/root/b/workspace.yaml", "root")["metadata"]["labels"] == {"a": "1", "b": "2"}
    with pytest.raises(StatusError):
        fleet.deleted("root", WORKSPACES, "b")
    with pytest.raises(StatusError) as told:
        fleet.patched("root", WORKSPACES, "b", metadata=metadata)
    assert told.value.code == 409
    assert "is gone in this proposal" in told.value.message


def test_an_api_is_proposed_and_no_key_is_made_for_it(fleet: ProposalFleet) -> None:
    before = sorted(fleet.keys.rglob("*"))
    offered = {"name": "widgets", "group": "example.io", "schema": "v1.widgets.example.io", "storage": {"crd": {}}}
    export = {"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": {"name": "widgets"},
              "spec": {"resources": [offered]}}  # fmt: skip
    for resource, obj in (("apiresourceschemas", yaml.safe_load(schema())), ("apiexports", export)):
        outcome = fleet.made("root:a", f"{resource}.apis.kcp.io", obj)
        assert outcome.warnings[-1].startswith("proposed on branch")
    assert sorted(fleet.keys.rglob("*")) == before
    assert len(fleet.proposed()) == 2
    assert fleet.find("root:a", "apiexports.apis.kcp.io", "widgets", "") is None
    fleet.merge()
    assert fleet.held() == {}
    assert fleet.find("root:a", "apiexports.apis.kcp.io", "widgets", "") is not None
