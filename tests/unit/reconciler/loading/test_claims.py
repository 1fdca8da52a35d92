"""Permission claims from commits: what bindings say of them, and that a recovery says the same."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from support import widgets
from support.loadedfleet import A, B, LoadedFleet
from support.recoveries import Another, assert_recovers

V2 = "apis.kcp.io/v1alpha2"
BINDINGS = "apibindings.apis.kcp.io"
ALL = {"matchAll": True}


def claim(resource: str, *verbs: str, **more: Any) -> dict[str, Any]:
    return {"group": "", "resource": resource, "verbs": list(verbs or ("*",)), **more}


def export(*claims: dict[str, Any]) -> str:
    resource = {"name": "widgets", "group": "example.io", "schema": "v1.widgets.example.io"}
    spec = {"resources": [resource], "permissionClaims": list(claims)}
    return json.dumps({"apiVersion": V2, "kind": "APIExport", "metadata": {"name": "widgets"}, "spec": spec})


def binding(*claims: dict[str, Any]) -> str:
    spec = {"reference": {"export": {"path": "root:a", "name": "widgets"}}, "permissionClaims": list(claims)}
    return json.dumps({"apiVersion": V2, "kind": "APIBinding", "metadata": {"name": "widgets"}, "spec": spec})


def accepted(resource: str, *verbs: str, **more: Any) -> dict[str, Any]:
    return claim(resource, *verbs, **{"selector": ALL, "state": "Accepted", **more})


@pytest.fixture
def offering(empty: LoadedFleet) -> LoadedFleet:
    """root:a offers Widgets and asks for the Secrets of root:b, which says nothing to that."""
    files = {f"{A}/schema.json": widgets.schema(), f"{A}/export.json": export(claim("secrets", "get", "list"))}
    empty.begin({**files, f"{B}/binding.json": binding()})
    return empty


def status(fleet: LoadedFleet) -> Any:
    return fleet.get("root:b", BINDINGS, "widgets")["status"]


def told(fleet: LoadedFleet, kind: str) -> tuple[str, str]:
    found = fleet.condition(fleet.get("root:b", BINDINGS, "widgets"), kind)
    return found["status"], found["reason"]


def test_an_accepted_claim_is_applied(offering: LoadedFleet, another: Another) -> None:
    asked = [{"group": "", "resource": "secrets", "identityHash": "", "verbs": ["get", "list"]}]
    assert status(offering)["exportPermissionClaims"] == asked
    assert "appliedPermissionClaims" not in status(offering)

    offering.commit({f"{B}/binding.json": binding(accepted("secrets", "get", "list"))})
    assert status(offering)["appliedPermissionClaims"] == [{**asked[0], "selector": ALL}]
    assert told(offering, "PermissionClaimsValid")[0] == told(offering, "PermissionClaimsApplied")[0] == "True"
    assert_recovers(offering, another)


@pytest.mark.parametrize("resources", [True, False], ids=["with resources", "claims alone"])
def test_what_was_granted_is_no_grant_to_whoever_has_the_path_later(
    offering: LoadedFleet, another: Another, resources: bool
) -> None:
    """The provider's workspace goes, and another one comes in its place, with an export of the name and the claims."""
    said = json.loads(export(claim("secrets", "get", "list")))
    if not resources:
        said["spec"]["resources"] = []
    files = {f"{A}/schema.json": widgets.schema(), f"{A}/export.json": json.dumps(said)}
    offering.commit({**files, f"{B}/binding.json": binding(accepted("secrets", "get", "list"))})
    former = offering.record("root:a").cluster
    free = json.dumps({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"annotations": {
        "treeplane.dev/protected": "false"}}})  # fmt: skip
    offering.commit({f"{A}/workspace.yaml": free})
    offering.commit({A: None})
    assert offering.held() == {}
    offering.commit({**files, f"{A}/workspace.yaml": ""})
    assert offering.record("root:a").cluster != former
    assert status(offering)["apiExportClusterName"] == former
    assert told(offering, "APIExportValid") == ("False", "APIExportNotFound")
    assert_recovers(offering, another)
    offering.commit({f"{B}/binding.json": None})
    offering.commit({f"{B}/binding.json": binding(accepted("secrets", "get", "list"))})
    assert status(offering)["apiExportClusterName"] == offering.record("root:a").cluster
    assert told(offering, "APIExportValid")[0] == "True"


def test_a_rejected_claim_is_not(offering: LoadedFleet) -> None:
    offering.commit({f"{B}/binding.json": binding(accepted("secrets", state="Rejected"))})
    assert "appliedPermissionClaims" not in status(offering)
    assert told(offering, "PermissionClaimsValid")[0] == "True"


def test_accepting_what_nobody_asks_for_is_told_and_heals(offering: LoadedFleet, another: Another) -> None:
    loaded = offering.commit({f"{B}/binding.json": binding(accepted("configmaps"))})
    assert offering.held(loaded) == {}
    assert told(offering, "PermissionClaimsValid") == ("False", "InvalidPermissionClaims")
    assert told(offering, "Ready")[0] == "True"
    assert_recovers(offering, another)
    offering.commit({f"{A}/export.json": export(claim("configmaps"))})
    assert told(offering, "PermissionClaimsValid")[0] == "True"
    assert [each["resource"] for each in status(offering)["appliedPermissionClaims"]] == ["configmaps"]


def test_accepting_less_is_a_warning(offering: LoadedFleet) -> None:
    offering.commit({f"{B}/binding.json": binding(accepted("secrets", "get"))})
    assert told(offering, "PermissionClaimsValid") == ("False", "PermissionClaimsMismatch")
    found = offering.condition(offering.get("root:b", BINDINGS, "widgets"), "PermissionClaimsValid")
    assert found["severity"] == "Warning"
    assert "secrets. (verbs: accepted [get], exported [get list])" in found["message"]


def test_of_an_export_that_is_gone_nothing_is_applied(offering: LoadedFleet) -> None:
    offering.commit({f"{B}/binding.json": binding(accepted("secrets", "get", "list"))})
    offering.commit({f"{A}/export.json": None})
    assert told(offering, "PermissionClaimsApplied") == ("False", "APIExportNotFound")
    assert "appliedPermissionClaims" not in status(offering)


def test_a_claim_without_its_identity_is_told_where_it_stands(offering: LoadedFleet) -> None:
    text = f"""apiVersion: {V2}
kind: APIExport
metadata: {{name: other}}
spec:
  permissionClaims:
  - {{group: "", resource: secrets, verbs: [get]}}
  - group: example.io
    resource: gadgets
    verbs: [get]
"""
    offering.commit({f"{A}/other.yaml": text})
    [error] = offering.held()["root:a"]
    assert error.startswith(f"{A}/other.yaml:7: APIExport other: spec.permissionClaims[1].identityHash: Invalid value")
    assert "identityHash is required for API types that are not built-in" in error


# -- of bindings that a type brings


ROOT = "workspaces/root"
C = f"{ROOT}/c"


def gold(lifecycle: str) -> str:
    said = {"defaultAPIBindings": [{"path": "root:a", "export": "widgets"}], "defaultAPIBindingLifecycle": lifecycle}
    kind = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "WorkspaceType", "metadata": {"name": "gold"}}
    return json.dumps({**kind, "spec": said})


def default_claims(fleet: LoadedFleet) -> dict[str, Any]:
    """What the binding of root:c accepts, by resource, with the selector."""
    [record] = fleet.store.scan(BINDINGS, fleet.record("root:c").cluster).records
    return {c["resource"]: c["selector"] for c in orjson.loads(record.value)["spec"]["permissionClaims"]}


@pytest.mark.parametrize(("lifecycle", "follows"), [("Maintain", True), ("InitializeOnly", False)])
def test_a_default_binding_accepts_what_its_export_claims(
    offering: LoadedFleet, another: Another, lifecycle: str, follows: bool
) -> None:
    workspace = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "spec": {"type": {"name": "gold"}}}
    offering.commit({f"{ROOT}/gold.json": gold(lifecycle), f"{C}/workspace.yaml": json.dumps(workspace)})
    assert offering.held() == {}
    assert default_claims(offering) == {"secrets": ALL}
    picked = {"matchLabels": {"a": "b"}}
    offering.commit({f"{A}/export.json": export(claim("secrets"), claim("configmaps", defaultSelector=picked))})
    more = {"secrets": ALL, "configmaps": picked} if follows else {"secrets": ALL}
    assert default_claims(offering) == more
    assert_recovers(offering, another)
    # What the type no longer brings accepts no more than it did.
    offering.commit({f"{ROOT}/gold.json": None})
    offering.commit({f"{A}/export.json": export(claim("secrets"), claim("configmaps"), claim("events"))})
    assert default_claims(offering) == more
    assert_recovers(offering, another, "gone")
