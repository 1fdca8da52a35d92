"""What kcp's kinds let one say and Treeplane does not do: said on the object, or refused if it would limit rights."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from support.loadedfleet import A, LoadedFleet

APIS, TENANCY = "apis.kcp.io/v1alpha1", "tenancy.kcp.io/v1alpha1"


def manifest(api_version: str, kind: str, name: str, **spec: Any) -> str:
    return json.dumps({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec})


TAKEN = [
    (
        "workspacetypes.tenancy.kcp.io",
        "t",
        manifest(TENANCY, "WorkspaceType", "t", authenticationConfigurations=[{"name": "a"}]),
        ["spec.authenticationConfigurations"],
        manifest(TENANCY, "WorkspaceType", "t", defaultAPIBindingLifecycle="InitializeOnly"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("resource", "name", "said", "fields", "silent"), TAKEN)
def test_what_is_taken_and_not_done_is_said(
    fleet: LoadedFleet,
    another: Callable[..., LoadedFleet],
    resource: str,
    name: str,
    said: str,
    fields: list[str],
    silent: str,
) -> None:
    fleet.commit({f"{A}/it.json": said})
    assert fleet.held() == {}
    obj = fleet.get("root:a", resource, name, "")
    told = fleet.condition(obj, "Supported")
    assert (told["status"], told["reason"]) == ("False", "NotSupported")
    assert told["lastTransitionTime"] == obj["metadata"]["creationTimestamp"]
    assert [field for field in fields if field not in told["message"]] == []
    # The same commit twice writes nothing, and a recovery says the same.
    fleet.recheck(["root:a"])
    assert fleet.changes() == []
    fleet.publish()
    second = another(fleet)
    second.load(second.recorded())
    assert second.get("root:a", resource, name, "")["status"] == obj["status"]
    fleet.commit({f"{A}/it.json": silent})
    assert "Supported" not in str(fleet.get("root:a", resource, name, ""))


def test_names_that_a_schema_allows_and_nobody_takes_are_refused(fleet: LoadedFleet) -> None:
    names = {"plural": "toys", "kind": "Toy"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"type": "object"}}
    spec = {"group": "example.io", "scope": "Cluster", "names": names, "versions": [version]}
    text = manifest(APIS, "APIResourceSchema", "v1.toys.example.io", nameValidation="PathSegmentName", **spec)
    fleet.commit({f"{A}/it.json": text})
    [error] = fleet.held()["root:a"]
    assert "spec.nameValidation: Unsupported value" in error
