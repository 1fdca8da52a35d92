"""What a type gives its workspaces: labels, and bindings, once or as it says by now."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from support.loadedfleet import LoadedFleet
from support.recoveries import Another, assert_recovers

from apiserver.registry.lifecycles import PHASE

ROOT = "workspaces/root"


def gold(**spec: Any) -> str:
    return json.dumps(
        {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "WorkspaceType", "metadata": {"name": "gold"}, "spec": spec}
    )


def of_gold(*names: str) -> dict[str, str]:
    said = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "spec": {"type": {"name": "gold"}}}
    return {f"workspaces/root/{name}/workspace.yaml": json.dumps(said) for name in names}


def labels(fleet: LoadedFleet, path: str) -> dict[str, str]:
    """But for that which says the phase."""
    found = dict(fleet.workspace(path)["metadata"]["labels"])
    assert found.pop(PHASE) == "Ready"
    return found


def test_a_type_labels_its_workspaces(fleet: LoadedFleet, another: Another) -> None:
    fleet.commit({f"{ROOT}/gold.json": gold(additionalWorkspaceLabels={"tier": "gold", "team": "none"})})
    said = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"labels": {"team": "a"}}}
    said["spec"] = {"type": {"name": "gold"}}
    fleet.commit({**of_gold("x", "y", "z"), "workspaces/root/own/workspace.yaml": json.dumps(said)})
    assert fleet.held() == {}
    for name in "xyz":  # made in full, and from a form
        assert labels(fleet, f"root:{name}") == {"tier": "gold", "team": "none"}
    assert labels(fleet, "root:own") == {"tier": "gold", "team": "a"}
    assert_recovers(fleet, another)
    fleet.commit({f"{ROOT}/gold.json": gold(additionalWorkspaceLabels={"tier": "platinum"})})
    assert labels(fleet, "root:x") == {"tier": "platinum"}
    assert labels(fleet, "root:own") == {"tier": "platinum", "team": "a"}
    assert_recovers(fleet, another, "changed")
    # Labels outlive the type, as all that it brought.
    fleet.commit({f"{ROOT}/gold.json": None})
    assert labels(fleet, "root:x") == {"tier": "platinum"}
    assert_recovers(fleet, another, "gone")


@pytest.mark.parametrize(
    ("labels", "why"),
    [
        ({"a b": "x"}, "name part must consist of alphanumeric characters"),
        ({"a": "x y"}, "a valid label must be an empty string or consist of alphanumeric characters"),
        ({"tenancy.kcp.io/phase": "Ready"}, "tenancy.kcp.io/phase is a reserved label"),
        ({"initializer.internal.kcp.io/0": ""}, "initializer.internal.kcp.io/0 is a reserved label"),
    ],
)
def test_labels_that_no_workspace_could_have_hold_who_declares_them(
    fleet: LoadedFleet, labels: dict[str, str], why: str
) -> None:
    fleet.commit({f"{ROOT}/gold.json": gold(additionalWorkspaceLabels=labels), **of_gold("x")})
    [error] = fleet.held()["root"]
    assert error.startswith(f"{ROOT}/gold.json:1: WorkspaceType gold: spec.additionalWorkspaceLabels: ")
    assert why in error


def taken(fleet: LoadedFleet, path: str) -> set[str]:
    """The exports that a workspace's bindings refer to."""
    found = fleet.store.scan("apibindings.apis.kcp.io", fleet.record(path).cluster).records
    return {orjson.loads(each.value)["spec"]["reference"]["export"]["name"] for each in found}


def brings(*names: str, lifecycle: str = "") -> str:
    said = {"defaultAPIBindingLifecycle": lifecycle} if lifecycle else {}
    return gold(defaultAPIBindings=[{"path": "root:a", "export": name} for name in names], **said)


@pytest.mark.parametrize("lifecycle", ["", "InitializeOnly"])
def test_bindings_come_with_a_workspace_and_stay(fleet: LoadedFleet, another: Another, lifecycle: str) -> None:
    fleet.commit({f"{ROOT}/gold.json": brings("one", "two", lifecycle=lifecycle), **of_gold("x")})
    assert taken(fleet, "root:x") == {"one", "two"}
    fleet.commit({f"{ROOT}/gold.json": brings("two", "three", lifecycle=lifecycle)})
    fleet.commit(of_gold("y"))
    assert taken(fleet, "root:x") == {"one", "two"}
    assert taken(fleet, "root:y") == {"two", "three"}
    assert_recovers(fleet, another)
    # What the type maintains comes beside what it brought once.
    fleet.commit({f"{ROOT}/gold.json": brings("four", lifecycle="Maintain")})
    assert taken(fleet, "root:x") == {"one", "two", "four"}
    assert_recovers(fleet, another, "maintained")
    fleet.commit({f"{ROOT}/gold.json": None})
    assert taken(fleet, "root:x") == {"one", "two", "four"}
    new = assert_recovers(fleet, another, "gone")
    for each in (fleet, new):
        each.commit({f"{ROOT}/gold.json": brings("five", lifecycle="Maintain")})
        assert taken(each, "root:x") == {"one", "two", "four", "five"}


def test_bindings_that_are_maintained_come_to_who_is_there_already(fleet: LoadedFleet, another: Another) -> None:
    """None goes with what its type says, no more than in kcp."""
    fleet.commit({f"{ROOT}/gold.json": brings("one", "two", lifecycle="Maintain"), **of_gold("x")})
    assert taken(fleet, "root:x") == {"one", "two"}
    fleet.commit({f"{ROOT}/gold.json": brings("two", "three", lifecycle="Maintain")})
    assert taken(fleet, "root:x") == {"one", "two", "three"}
    assert_recovers(fleet, another)


def test_a_type_says_that_its_virtual_workspaces_are_there(fleet: LoadedFleet, another: Another) -> None:
    fleet.commit({f"{ROOT}/gold.json": gold()})
    for name in ("gold", "universal"):
        found = fleet.get("root", "workspacetypes.tenancy.kcp.io", name, "")
        for kind in ("Ready", "VirtualWorkspaceURLsReady"):
            assert fleet.condition(found, kind)["status"] == "True"
    assert_recovers(fleet, another)


def test_types_of_two_workspaces_change_in_one_commit(fleet: LoadedFleet, another: Another) -> None:
    """Whoever has one of them may have to wait for the other to be judged, and the step does not."""
    said = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace"}
    said["spec"] = {"type": {"name": "gold", "path": "root:b"}}
    types = {f"{ROOT}/{name}/gold.json": gold(additionalWorkspaceLabels={"tier": name}) for name in "ab"}
    fleet.commit({**types, f"{ROOT}/x/workspace.yaml": json.dumps(said)})
    assert labels(fleet, "root:x") == {"tier": "b"}
    above = gold(extend={"with": [{"name": "gold", "path": "root:a"}]})
    for number, later in enumerate((gold(additionalWorkspaceLabels={"tier": "later"}), above)):
        team = gold(additionalWorkspaceLabels={"team": str(number)})
        fleet.commit({f"{ROOT}/a/gold.json": team, f"{ROOT}/b/gold.json": later})
        assert fleet.held() == {}
        assert labels(fleet, "root:x") == ({} if number else {"tier": "later"}), "those of its own type"
        assert_recovers(fleet, another, str(number))


@pytest.mark.parametrize("before", [True, False], ids=["held before", "held by the same commit"])
@pytest.mark.parametrize("asks", ["another type", "what cannot be read"])
def test_who_is_held_stays_what_it_was_whatever_its_type_says(
    fleet: LoadedFleet, another: Another, asks: str, before: bool
) -> None:
    fleet.commit({f"{ROOT}/gold.json": gold(additionalWorkspaceLabels={"tier": "gold"}), **of_gold("x")})
    file, said = next(iter(of_gold("x").items()))
    bad = {file: said.replace("gold", "team")} if asks == "another type" else {f"{ROOT}/x/bad.yaml": "kind: ["}
    if before:
        fleet.commit(bad)
    fleet.commit({f"{ROOT}/gold.json": gold(additionalWorkspaceLabels={"tier": "iron"}, writes="Store"), **bad})
    assert list(fleet.held()) == ["root:x"]
    assert (fleet.record("root:x").labels, fleet.record("root:x").writes) == ({"tier": "gold"}, "")
    assert fleet.workspace("root:x")["metadata"]["labels"]["tier"] == "gold"
    assert_recovers(fleet, another)
    fleet.commit({**of_gold("x"), f"{ROOT}/x/bad.yaml": None})
    assert fleet.held() == {}
    assert (labels(fleet, "root:x"), fleet.record("root:x").writes) == ({"tier": "iron"}, "Store")
    assert_recovers(fleet, another, "mended")
