from __future__ import annotations

import base64
import hashlib
import re
from typing import Any

import orjson
import pytest

from apiserver.registry import discovery, kinds, openapi

WORKSPACE, TARGET = kinds.workspace_builtins(), kinds.target_builtins()


def widget() -> kinds.KindTable:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "description": "What it should be like."}}}
    subresources = {"status": {}, "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema},
               "subresources": subresources}  # fmt: skip
    names = {"plural": "widgets", "kind": "Widget"}
    spec = {"group": "stable.example.io", "names": names, "scope": "Namespaced", "versions": [version]}
    return kinds.overlay(WORKSPACE, kinds.kinds_of_crd({"spec": spec}))


def group_versions(table: kinds.KindTable) -> list[tuple[str, str]]:
    return [(group, version) for group, versions in table.groups().items() for version in versions]


@pytest.mark.parametrize(("table", "group", "version"), [
    *((WORKSPACE, *gv) for gv in group_versions(WORKSPACE)), *((TARGET, *gv) for gv in group_versions(TARGET)),
])  # fmt: skip
def test_every_kind_can_be_patched_with_field_validation_and_explained(
    table: kinds.KindTable, group: str, version: str
) -> None:
    document = openapi.document(table, group, version)
    schemas = document["components"]["schemas"]
    referred = set(re.findall(r"#/components/schemas/([^\"]+)", orjson.dumps(document).decode()))
    assert all(item.get("parameters", True) for item in document["paths"].values()), "Go writes no empty lists"
    assert referred <= schemas.keys()
    for kind in (k for k in table.all() if (k.group, k.version) == (group, version)):
        gvk = {"group": group, "version": version, "kind": kind.kind}
        assert gvk in schemas[openapi.definition_name(kind)]["x-kubernetes-group-version-kind"]
        operations = [item["patch"] for item in document["paths"].values() if "patch" in item]
        mine = [o for o in operations if o["x-kubernetes-group-version-kind"] == gvk]
        if "patch" in kind.verbs:
            assert mine and all("fieldValidation" in {p["name"] for p in o["parameters"]} for o in mine)


def test_custom_resource_document() -> None:
    document = openapi.document(widget(), "stable.example.io", "v1")
    one = "/apis/stable.example.io/v1/namespaces/{namespace}/widgets/{name}"
    assert set(document["paths"]) == {
        "/apis/stable.example.io/v1/widgets",
        "/apis/stable.example.io/v1/namespaces/{namespace}/widgets",
        one,
        f"{one}/status",
        f"{one}/scale",
    }
    schema = document["components"]["schemas"]["io.example.stable.v1.Widget"]
    assert schema["properties"]["apiVersion"]["description"].startswith("APIVersion defines")
    assert schema["properties"]["metadata"]["description"].startswith("Standard object's metadata")
    patch = document["paths"][one]["patch"]
    assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]
    assert document["paths"][f"{one}/scale"]["get"]["x-kubernetes-group-version-kind"]["kind"] == "Scale"
    meta = document["components"]["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"]
    assert meta["properties"]["creationTimestamp"]["description"].startswith("CreationTimestamp is a timestamp")


def test_our_own_kinds_explain_themselves() -> None:
    def undescribed(schema: dict[str, Any], path: str) -> list[str]:
        found = []
        for name, field in schema.get("properties", {}).items():
            at = f"{path}.{name}"
            known = field.get("description") or at.split(".")[1] == "metadata"
            found += [] if known else [at]
            found += undescribed(field, at) + undescribed(field.get("items", {}), f"{at}[]")
        return found

    for kind in WORKSPACE.all():
        if kind.custom:
            schema = openapi.document(WORKSPACE, kind.group, kind.version)["components"]["schemas"]
            assert undescribed(schema[openapi.definition_name(kind)], kind.kind) == []


def resources(document: dict[str, Any] | None) -> dict[str, dict[str, Any]]:
    assert document is not None
    return {r["name"]: r for r in document["resources"]}


@pytest.mark.parametrize(
    ("group", "version", "resource", "found"),
    [
        ("autoscaling", "v1", "horizontalpodautoscalers", "qwQve8ut294="),
        ("autoscaling", "v2", "horizontalpodautoscalers", "qwQve8ut294="),
        ("events.k8s.io", "v1", "events", "r2yiGXH7wu8="),
        ("", "v1", "componentstatuses", None),
    ],
)
def test_hashes_are_those_of_the_version_kept(group: str, version: str, resource: str, found: str | None) -> None:
    entry = resources(discovery.api_resource_list(TARGET, group, version))[resource]
    assert entry.get("storageVersionHash") == found


def versioned(*names: str, stored: str) -> kinds.KindTable:
    schema = {"openAPIV3Schema": {"type": "object"}}
    versions = [{"name": each, "served": True, "storage": each == stored, "schema": schema} for each in names]
    spec = {"group": "example.io", "names": {"plural": "widgets", "kind": "Widget"}, "scope": "Cluster"}
    return kinds.overlay(WORKSPACE, kinds.kinds_of_crd({"spec": {**spec, "versions": versions}}))


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_each_version_of_a_custom_resource_has_the_hash_of_the_stored_one(version: str) -> None:
    table = versioned("v1", "v1beta1", stored="v1beta1")
    [entry] = resources(discovery.api_resource_list(table, "example.io", version)).values()
    digest = hashlib.sha256(b"example.io/v1beta1/Widget").digest()[:8]
    assert entry["storageVersionHash"] == base64.b64encode(digest).decode()


def test_so_have_kcps_kinds_though_none_is_created() -> None:
    entry = resources(discovery.api_resource_list(WORKSPACE, "core.kcp.io", "v1alpha1"))["logicalclusters"]
    digest = hashlib.sha256(b"core.kcp.io/v1alpha1/LogicalCluster").digest()[:8]
    assert entry["storageVersionHash"] == base64.b64encode(digest).decode()


def test_legacy_discovery() -> None:
    found = resources(discovery.api_resource_list(TARGET, "apps", "v1"))
    assert found["deployments"]["shortNames"] == ["deploy"] and found["deployments"]["categories"] == ["all"]
    assert found["deployments/scale"] == {
        "name": "deployments/scale", "singularName": "", "namespaced": True, "group": "autoscaling", "version": "v1",
        "kind": "Scale", "verbs": ["get", "patch", "update"],
    }  # fmt: skip
    assert found["deployments"]["storageVersionHash"] == "8aSe+NMegvE="
    assert found["deployments/status"]["kind"] == "Deployment"
    assert resources(discovery.api_resource_list(TARGET, "", "v1"))["namespaces/finalize"]["verbs"] == ["update"]
    assert discovery.api_resource_list(TARGET, "apps", "v2") is None
    assert discovery.api_group(WORKSPACE, "apps") is None and discovery.api_group(WORKSPACE, "") is None
    group = discovery.api_group(widget(), "stable.example.io")
    assert group is not None and group["preferredVersion"]["groupVersion"] == "stable.example.io/v1"
    assert "" not in [g["name"] for g in discovery.api_group_list(WORKSPACE)["groups"]]


def test_aggregated_discovery() -> None:
    core, others = discovery.aggregated(widget(), core=True), discovery.aggregated(widget(), core=False)
    assert [i["metadata"] for i in core["items"]] == [{}]
    by_name = {i["metadata"]["name"]: i for i in others["items"]}
    [version] = by_name["stable.example.io"]["versions"]
    [resource] = version["resources"]
    assert version["freshness"] == "Current" and resource["scope"] == "Namespaced"
    assert [s["subresource"] for s in resource["subresources"]] == ["scale", "status"]
    assert resource["responseKind"] == {"group": "stable.example.io", "version": "v1", "kind": "Widget"}
