"""A file that is an object as kubectl prints it: for `treeplane diff`, what only the server sets is nobody's change."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.loadedfleet import A, B, LoadedFleet
from support.widgets import binding, crd, export, schema

from apiserver.model.marks import FINALIZERS
from apiserver.registry.boundresources import with_finalizer
from reconciler.commands.diff import compare
from reconciler.loading.changeset import ChangeKind
from reconciler.review.result import ChangeReview

BINDINGS, FILE = "apibindings.apis.kcp.io", f"{B}/it.json"
OFFERED = {f"{A}/schema.json": schema(), f"{A}/export.json": export(), f"{B}/schema.json": schema()}


def plain(kind: str, api: str = "v1") -> str:
    return json.dumps({"apiVersion": api, "kind": kind, "metadata": {"name": "it"}})


WRITTEN = {
    BINDINGS: ("widgets", binding("root:a")),
    "customresourcedefinitions.apiextensions.k8s.io": ("widgets.example.io", crd()),
    "apiexports.apis.kcp.io": ("widgets", export()),
    "workspacetypes.tenancy.kcp.io": ("it", plain("WorkspaceType", "tenancy.kcp.io/v1alpha1")),
    "namespaces": ("it", plain("Namespace")),
    "configmaps": ("it", plain("ConfigMap")),
}
"""By resource: a name, and what stands in its file."""


def printed(fleet: LoadedFleet, resource: str, name: str) -> dict[str, Any]:
    """As it is read through the API, with every finalizer that the server has for what is deleted."""
    found = fleet.get("root:b", resource, name)
    found = with_finalizer(found) if resource == BINDINGS else found
    theirs = dict.fromkeys([*found["metadata"].get("finalizers", ()), *FINALIZERS])
    return {**found, "metadata": {**found["metadata"], "finalizers": [*theirs]}}


def foreseen(fleet: LoadedFleet, text: str) -> ChangeReview:
    base = fleet.repo.head
    fleet.repo.commit({FILE: text})
    return compare(fleet.repo.path, f"{base}..main")


@pytest.mark.parametrize("resource", WRITTEN)
def test_it_says_what_the_file_said_before(fleet: LoadedFleet, resource: str) -> None:
    name, text = WRITTEN[resource]
    fleet.commit({**OFFERED, FILE: text})
    assert fleet.held() == {}
    fleet.publish()
    [workspace] = foreseen(fleet, json.dumps(printed(fleet, resource, name))).workspaces
    assert (workspace.path, workspace.change) == ("root:b", ChangeKind.UNCHANGED)
    fleet.load()
    assert fleet.written() == []


@pytest.mark.parametrize("resource", WRITTEN)
def test_a_new_file_of_it_changes_by_its_next_change_alone(fleet: LoadedFleet, resource: str) -> None:
    name, text = WRITTEN[resource]
    fleet.commit({**OFFERED, FILE: text})
    again = printed(fleet, resource, name)
    fleet.commit({FILE: None})
    fleet.commit({FILE: json.dumps(again)})
    assert fleet.held() == {}
    assert "finalizers" not in fleet.get("root:b", resource, name)["metadata"]
    fleet.publish()
    again["metadata"]["labels"] = {**again["metadata"].get("labels", {}), "a": "b"}
    [workspace] = foreseen(fleet, json.dumps(again)).workspaces
    [changed] = workspace.objects
    [field] = changed.fields
    assert field.field in ("metadata.labels", "metadata.labels.a")
