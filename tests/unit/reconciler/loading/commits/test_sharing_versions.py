"""APIExports written through the API in one version, and read and changed in another: what git gets of it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from support import widgets
from support.commitfleet import CommitFleet
from support.loadedfleet import A, B

from apiserver.registry import codec, rest
from apiserver.registry.kinds import workspace_builtins
from apiserver.registry.rest_options import Collection, WriteOptions

EXPORTS = "apiexports.apis.kcp.io"
FILE = f"{A}/export.json"


def older(fleet: CommitFleet) -> Collection:
    """The collection as a client of v1alpha1 has it."""
    at = fleet.at("root:a", EXPORTS)
    kind = workspace_builtins().by_resource("apis.kcp.io", "v1alpha1", "apiexports")
    assert kind is not None
    return replace(at, kind=kind)


@pytest.fixture
def offering(fleet: CommitFleet) -> CommitFleet:
    """root:a offers Widgets in a manifest of v1alpha1, and root:b takes them."""
    files = {FILE: widgets.export(), f"{A}/schema.json": widgets.schema()}
    fleet.commit({**files, f"{B}/binding.json": widgets.binding("root:a")})
    return fleet


def test_a_manifest_of_v1alpha1_is_served_as_what_it_means_in_v1alpha2(offering: CommitFleet) -> None:
    export = offering.get("root:a", EXPORTS, "widgets")
    assert export["apiVersion"] == "apis.kcp.io/v1alpha2"
    assert [each["schema"] for each in export["spec"]["resources"]] == ["v1.widgets.example.io"]
    binding = offering.get("root:b", "apibindings.apis.kcp.io", "widgets")
    assert binding["status"]["phase"] == "Bound"


def test_a_client_of_v1alpha1_adds_a_claim_and_keeps_the_verbs_of_others(offering: CommitFleet) -> None:
    spec = {"permissionClaims": [{"group": "", "resource": "secrets", "identityHash": "", "verbs": ["get"]}]}
    export = offering.get("root:a", EXPORTS, "widgets")
    offering.change("root:a", EXPORTS, "widgets", spec={**export["spec"], **spec})

    def claim(live: Any) -> Any:
        live["spec"]["permissionClaims"].append({"group": "", "resource": "configmaps", "all": True})
        return live

    answer = rest.patch(older(offering), "", "widgets", claim, WriteOptions("test")).obj
    assert answer["spec"]["latestResourceSchemas"] == ["v1.widgets.example.io"]
    record = offering.store.get(offering.key("root:a", EXPORTS, "widgets"))
    assert record is not None
    stored = codec.decode(record.value, 0)
    assert {c["resource"]: c["verbs"] for c in stored["spec"]["permissionClaims"]} == {
        "secrets": ["get"], "configmaps": ["*"]
    }  # fmt: skip
    declared = json.loads(offering.tree()[FILE])
    assert declared["apiVersion"] == "apis.kcp.io/v1alpha2"
    assert [c["resource"] for c in declared["spec"]["permissionClaims"]] == ["secrets", "configmaps"]


def test_an_apply_in_each_version_owns_its_own_fields(offering: CommitFleet) -> None:
    applied = {"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIExport", "metadata": {"name": "made"},
               "spec": {"latestResourceSchemas": ["v1.widgets.example.io"]}}  # fmt: skip
    rest.apply(older(offering), "", "made", applied, WriteOptions("first"))
    claim = {"group": "", "resource": "secrets", "verbs": ["get"]}
    newer = {"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": {"name": "made"},
             "spec": {"permissionClaims": [claim]}}  # fmt: skip
    made = rest.apply(offering.at("root:a", EXPORTS), "", "made", newer, WriteOptions("second")).obj
    assert [each["schema"] for each in made["spec"]["resources"]] == ["v1.widgets.example.io"]
    gone = rest.apply(offering.at("root:a", EXPORTS), "", "made", {**newer, "spec": {}}, WriteOptions("second")).obj
    assert "permissionClaims" not in gone["spec"]
    assert [each["name"] for each in gone["spec"]["resources"]] == ["widgets"]
