"""SyncTargets, Locations and Placements come by exports that ship, keep their store names, and are nobody else's."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.loadedfleet import A, B, LoadedFleet
from support.recoveries import Another, assert_recovers
from support.shipped import SCHEDULING, WORKLOAD, binding

from apiserver.registry.kinds import SHIPPED_IDENTITY, exported_builtins

CRDS, BINDINGS, EXPORTS = (
    "customresourcedefinitions.apiextensions.k8s.io",
    "apibindings.apis.kcp.io",
    "apiexports.apis.kcp.io",
)
PLACEMENTS, TARGETS = "placements.scheduling.kcp.io", "synctargets.workload.kcp.io"
COMPUTE = "workspaces/root/compute"
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
APIS, PLACE = f"{A}/apis.yaml", f"{A}/place.json"


def manifest(api: str, kind: str, name: str, spec: Any) -> str:
    return json.dumps({"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec})


PLACEMENT = manifest("scheduling.kcp.io/v1alpha1", "Placement", "p", {"locationWorkspace": "root:b"})
VERSION = {"name": "v1alpha1", "served": True, "storage": True}
NAMES = {"plural": "placements", "singular": "placement", "kind": "Placement", "listKind": "PlacementList"}
SPEC = {"group": "scheduling.kcp.io", "scope": "Cluster", "names": NAMES}
SCHEMA = manifest(
    "apis.kcp.io/v1alpha1",
    "APIResourceSchema",
    "mine.placements.scheduling.kcp.io",
    {**SPEC, "versions": [{**VERSION, "schema": OPEN}]},
)


def exporting(name: str, *schemas: str) -> str:
    return manifest("apis.kcp.io/v1alpha1", "APIExport", name, {"latestResourceSchemas": list(schemas)})


def bound_to(path: str, name: str) -> str:
    return manifest("apis.kcp.io/v1alpha1", "APIBinding", name, {"reference": {"export": {"path": path, "name": name}}})


def defined() -> str:
    versions = [{**VERSION, "schema": {"openAPIV3Schema": OPEN}}]
    spec = {**SPEC, "versions": versions}
    return manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", PLACEMENTS, spec)


def told(fleet: LoadedFleet, name: str, path: str = "root:b") -> tuple[str, str]:
    """Phase of a binding, and what BindingUpToDate says."""
    found = fleet.get(path, BINDINGS, name, "")
    return found["status"]["phase"], fleet.condition(found, "BindingUpToDate").get("message", "")


def served(fleet: LoadedFleet, path: str) -> set[str]:
    """The store names of our own kinds that a workspace serves."""
    return {k.storage for k in fleet.kinds(path)} & {k.storage for k in exported_builtins().all()}


@pytest.mark.parametrize(
    ("kind", "group", "export"),
    [
        ("SyncTarget", "workload.kcp.io", WORKLOAD),
        ("Location", "scheduling.kcp.io", SCHEDULING),
        ("Placement", "scheduling.kcp.dev", SCHEDULING),
    ],
)
def test_where_it_is_not_bound_the_error_says_what_to_bind(
    fleet: LoadedFleet, kind: str, group: str, export: str
) -> None:
    said = f"# nothing\napiVersion: {group}/v1alpha1\nkind: {kind}\nmetadata: {{name: it}}\n"
    fleet.commit({f"{A}/it.yaml": said})
    [error] = fleet.held()["root:a"]
    assert error.startswith(f'{A}/it.yaml:2: no kind "{kind}" in apiVersion "{group.replace(".dev", ".io")}/v1alpha1"')
    assert f"bind the export {export} of root:compute" in error
    assert f"spec.reference.export {{path: root:compute, name: {export}}}" in error
    fleet.commit({f"{A}/apis.yaml": binding(export)})
    assert not any("no kind" in error for error in fleet.held().get("root:a", []))


def test_who_binds_them_has_them_under_their_own_store_names(fleet: LoadedFleet, another: Another) -> None:
    target = manifest("workload.kcp.io/v1alpha1", "SyncTarget", "t", {"connection": {"embedded": {}}})
    fleet.commit({APIS: binding(WORKLOAD, SCHEDULING), PLACE: PLACEMENT, f"{A}/t.json": target})
    assert fleet.held() == {}
    assert served(fleet, "root:b") == set()
    for each in (fleet, assert_recovers(fleet, another)):
        assert served(each, "root:a") == {k.storage for k in exported_builtins().all()}
        for resource, name in ((PLACEMENTS, "p"), (TARGETS, "t")):
            assert each.key("root:a", resource, name, "").resource == resource
            assert each.find("root:a", resource, name, "") is not None
        resources = each.get("root:a", BINDINGS, SCHEDULING, "")["status"]["boundResources"]
        assert {r["schema"]["identityHash"] for r in resources} == {SHIPPED_IDENTITY}


def test_their_exports_have_no_key(fleet: LoadedFleet) -> None:
    for export in (WORKLOAD, SCHEDULING):
        found = fleet.get("root:compute", EXPORTS, export, "")
        assert found["status"]["identityHash"] == SHIPPED_IDENTITY
    made = {file.name.partition(":")[2] for file in (fleet.keys / "identities").iterdir()}
    assert made == {"kubernetes"}


def test_they_go_with_their_binding(fleet: LoadedFleet) -> None:
    fleet.commit({APIS: binding(SCHEDULING), PLACE: PLACEMENT})
    fleet.commit({APIS: None})
    assert "no kind" in fleet.held()["root:a"][0]
    assert fleet.find("root:a", PLACEMENTS, "p", "") is not None
    fleet.delete({PLACE: None})
    assert fleet.held() == {}
    assert not fleet.store.scan(PLACEMENTS).records


def test_nobody_elses_export_brings_them(fleet: LoadedFleet, another: Another) -> None:
    """Whatever its schema says: its objects would pass for ours to whoever reads manifests."""
    mine = {f"{A}/schema.json": SCHEMA, f"{A}/export.json": exporting("mine", "mine.placements.scheduling.kcp.io")}
    fleet.commit({**mine, f"{B}/mine.json": bound_to("root:a", "mine")})
    assert fleet.held() == {}
    why = "placements.scheduling.kcp.io is served already by the export scheduling.kcp.io of root:compute alone"
    assert told(fleet, "mine") == ("Binding", f"{why}: bind that one")
    assert served(fleet, "root:b") == set()
    # Nor does it stand in the way of ours, before it or behind it.
    fleet.commit({f"{B}/apis.yaml": binding(SCHEDULING), f"{B}/place.json": PLACEMENT})
    for each in (fleet, assert_recovers(fleet, another)):
        assert each.held() == {}
        assert (told(each, "mine")[0], told(each, SCHEDULING)[0]) == ("Binding", "Bound")
        assert PLACEMENTS in served(each, "root:b")


@pytest.mark.parametrize("bound", [False, True])
def test_no_definition_brings_them(fleet: LoadedFleet, another: Another, bound: bool) -> None:
    ours: dict[str, str | None] = {f"{B}/apis.yaml": binding(SCHEDULING), f"{B}/place.json": PLACEMENT} if bound else {}
    fleet.commit({**ours, f"{B}/crd.json": defined()})
    for each in (fleet, assert_recovers(fleet, another)):
        assert each.held() == {}
        found = each.get("root:b", CRDS, PLACEMENTS, "")
        assert each.condition(found, "Established")["status"] == "False"
        assert '"placements" is already in use' in each.condition(found, "NamesAccepted")["message"]
        assert served(each, "root:b") == ({PLACEMENTS, "locations.scheduling.kcp.io"} if bound else set())
    # And its end takes nothing along.
    fleet.commit({f"{B}/crd.json": None})
    assert bool(fleet.store.scan(PLACEMENTS).records) is bound


def test_a_second_binding_waits_for_the_first(fleet: LoadedFleet) -> None:
    again = manifest(
        "apis.kcp.io/v1alpha1",
        "APIBinding",
        "twice",
        {"reference": {"export": {"path": "root:compute", "name": SCHEDULING}}},
    )
    fleet.commit({f"{B}/apis.yaml": binding(SCHEDULING), f"{B}/again.json": again, f"{B}/place.json": PLACEMENT})
    assert (told(fleet, SCHEDULING)[0], told(fleet, "twice")[0]) == ("Bound", "Binding")
    before = fleet.get("root:b", PLACEMENTS, "p", "")
    fleet.commit({f"{B}/apis.yaml": None})
    assert fleet.held() == {}
    assert told(fleet, "twice")[0] == "Bound"
    assert fleet.get("root:b", PLACEMENTS, "p", "") == before


def test_who_declares_the_export_anew_makes_nothing_else_of_it(fleet: LoadedFleet, another: Another) -> None:
    """A directory root:compute may say what else it likes: our kinds stay what they are, and nothing else gets to
    stand where built-in kinds do."""
    names = {"plural": "pods", "singular": "pod", "kind": "Pod", "listKind": "PodList"}
    spec = {"group": "", "scope": "Namespaced", "names": names, "versions": [{**VERSION, "name": "v1", "schema": OPEN}]}
    files = {
        f"{COMPUTE}/workspace.yaml": "",
        f"{COMPUTE}/schema.json": SCHEMA,
        f"{COMPUTE}/pods.json": manifest("apis.kcp.io/v1alpha1", "APIResourceSchema", "mine.pods.core", spec),
        f"{COMPUTE}/export.json": exporting(SCHEDULING, "mine.placements.scheduling.kcp.io", "mine.pods.core"),
    }
    fleet.commit({**files, f"{B}/apis.yaml": binding(SCHEDULING), f"{B}/place.json": PLACEMENT})
    for each in (fleet, assert_recovers(fleet, another)):
        assert each.held() == {}
        kinds = {k.qualified: k for k in each.kinds("root:b")}
        ours = kinds[PLACEMENTS]
        assert ours == exported_builtins().preferred("scheduling.kcp.io", "placements")
        assert kinds["pods"].storage == f"pods:{SHIPPED_IDENTITY}"
