"""Kinds that ship, bound through the API where writes go to the store: nobody else brings them, by no request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.apifleet import ApiFleet
from support.shipped import SCHEDULING

from apiserver.model import conditions
from apiserver.model.keys import Key
from apiserver.registry.kinds import SHIPPED_IDENTITY

APIS = "/apis/apis.kcp.io/v1alpha2"
PLACEMENTS = f"/apis/{SCHEDULING}/v1alpha1/placements"
STORED = "placements.scheduling.kcp.io"
TYPE = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: WorkspaceType\nmetadata: {name: lab}\nspec: {writes: Store}\n"
OF_TYPE = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\nspec: {type: {name: lab, path: root}}\n"
PLACEMENT = {"apiVersion": f"{SCHEDULING}/v1alpha1", "kind": "Placement", "metadata": {"name": "p"}, "spec": {}}


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[ApiFleet]:
    made = ApiFleet(tmp_path / "fleet")
    files = {f"workspaces/root/{name}/workspace.yaml": OF_TYPE for name in ("lab", "other")}
    made.begin({"workspaces/root/types.yaml": TYPE, **files})
    assert not made.held()
    yield made
    made.close()


def bind(fleet: ApiFleet, name: str, path: str, export: str) -> Any:
    """The status of a binding in root:lab."""
    obj = {"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": {"name": name}}
    reference = {"reference": {"export": {"path": path, "name": export}}}
    made = fleet.call("POST", "root:lab", f"{APIS}/apibindings", {**obj, "spec": reference})
    assert made.status == 201, made.message
    fleet.settle()
    return fleet.call("GET", "root:lab", f"{APIS}/apibindings/{name}").json["status"]


def offer(fleet: ApiFleet) -> Any:
    """Another export of Placements, in root:other, that says the identity of what ships."""
    names = {"plural": "placements", "singular": "placement", "kind": "Placement", "listKind": "PlacementList"}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": {"type": "object"}}
    spec = {"group": SCHEDULING, "names": names, "scope": "Cluster", "versions": [version]}
    name = f"theirs.placements.{SCHEDULING}"
    schema = {"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIResourceSchema", "metadata": {"name": name}}
    url = "/apis/apis.kcp.io/v1alpha1/apiresourceschemas"
    assert fleet.call("POST", "root:other", url, {**schema, "spec": spec}).status == 201
    export = {"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": {"name": "theirs"}}
    offered = {"resources": [{"name": "placements", "group": SCHEDULING, "schema": name}]}
    lie = {"status": {"identityHash": SHIPPED_IDENTITY}}
    made = fleet.call("POST", "root:other", f"{APIS}/apiexports", {**export, "spec": offered, **lie})
    assert made.status == 201, made.message
    fleet.settle()
    return fleet.call("GET", "root:other", f"{APIS}/apiexports/theirs").json["status"]


def test_they_are_bound_and_stand_under_their_own_store_names(fleet: ApiFleet) -> None:
    assert fleet.call("POST", "root:lab", PLACEMENTS, PLACEMENT).status == 404
    status = bind(fleet, "mine", "root:compute", SCHEDULING)
    assert (status["phase"], {r["schema"]["identityHash"] for r in status["boundResources"]}) == (
        "Bound",
        {SHIPPED_IDENTITY},
    )
    made = fleet.call("POST", "root:lab", PLACEMENTS, PLACEMENT)
    assert made.status == 201, made.message
    assert fleet.store.get(Key(STORED, fleet.record("root:lab").cluster, "", "p")) is not None


def test_nobody_elses_export_brings_them_whatever_identity_it_says(fleet: ApiFleet) -> None:
    assert offer(fleet)["identityHash"] != SHIPPED_IDENTITY
    status = bind(fleet, "theirs", "root:other", "theirs")
    why = conditions.get(status["conditions"], "BindingUpToDate")
    assert (status["phase"], why is not None and why["reason"]) == ("Binding", "NamingConflicts")
    assert fleet.call("POST", "root:lab", PLACEMENTS, PLACEMENT).status == 404
    assert bind(fleet, "mine", "root:compute", SCHEDULING)["phase"] == "Bound"


def test_they_end_with_their_binding(fleet: ApiFleet) -> None:
    bind(fleet, "mine", "root:compute", SCHEDULING)
    assert fleet.call("POST", "root:lab", PLACEMENTS, PLACEMENT).status == 201
    assert fleet.call("DELETE", "root:lab", f"{APIS}/apibindings/mine").status == 200
    late = fleet.call("POST", "root:lab", PLACEMENTS, {**PLACEMENT, "metadata": {"name": "late"}})
    assert late.status in (403, 405)
    fleet.settle()
    assert not fleet.store.scan(STORED).records
    assert fleet.call("GET", "root:lab", f"{APIS}/apibindings/mine").status == 404
