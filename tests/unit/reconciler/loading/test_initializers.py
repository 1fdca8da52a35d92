"""A new workspace of a type with an initializer is Initializing until the programs have said that they are done."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.loadedfleet import LoadedFleet, Object, configmap
from support.recoveries import Another, assert_recovers

from apiserver.model import conditions
from apiserver.registry.lifecycles import INITIALIZER, PHASE, TERMINATOR, without

ROOT, X = "workspaces/root", "workspaces/root/x"
LOGICAL_CLUSTERS = "logicalclusters.core.kcp.io"
LATER = "2026-05-05T00:00:00Z"


def kind(name: str, **spec: Any) -> str:
    return json.dumps(
        {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "WorkspaceType", "metadata": {"name": name}, "spec": spec}
    )


def of(name: str) -> str:
    said = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "spec": {"type": {"name": name}}}
    return json.dumps(said)


BASE = {"base": {"initializer": True}, "gold": {"initializer": True, "extend": {"with": [{"name": "base"}]}}}
TYPES = {f"{ROOT}/{name}.json": kind(name, **spec) for name, spec in BASE.items()}


def cluster(fleet: LoadedFleet, path: str) -> Object:
    return fleet.get(path, LOGICAL_CLUSTERS, "cluster", "")


def both(fleet: LoadedFleet, path: str) -> list[Object]:
    return [cluster(fleet, path), fleet.workspace(path)]


def names(fleet: LoadedFleet, *types: str) -> list[str]:
    return [f"{fleet.record('root').cluster}:{name}" for name in types]


def done(fleet: LoadedFleet, path: str, name: str) -> None:
    """As the view writes."""
    parent, _, base = path.rpartition(":")
    keys = fleet.key(path, LOGICAL_CLUSTERS, "cluster", ""), fleet.key(parent, "workspaces.tenancy.kcp.io", base, "")
    for key in keys:
        fleet.update(key, lambda obj: obj.update(without(obj, INITIALIZER, name, LATER)))


def begun(fleet: LoadedFleet, *spaces: str) -> LoadedFleet:
    fleet.commit(TYPES)
    files = {f"{ROOT}/{space}/workspace.yaml": of("gold") for space in spaces or ("x",)}
    fleet.commit({**files, **{f"{ROOT}/{space}/app.yaml": configmap() for space in spaces or ("x",)}})
    assert fleet.held() == {}
    return fleet


def phase(fleet: LoadedFleet, path: str) -> str:
    [phase] = {obj["status"]["phase"] for obj in both(fleet, path)}
    assert {obj["metadata"]["labels"][PHASE] for obj in both(fleet, path)} == {phase}
    return str(phase)


def test_a_new_workspace_waits_for_its_types_programs_and_those_it_extends(
    fleet: LoadedFleet, another: Another
) -> None:
    begun(fleet, "x", "y", "z")  # made in full, and from a form
    wanted = names(fleet, "base", "gold")
    for path in ("root:x", "root:y", "root:z"):
        assert phase(fleet, path) == "Initializing"
        assert fleet.data(path) == {"a": "b"}, "what git declares is served meanwhile"
        assert cluster(fleet, path)["spec"]["initializers"] == wanted
        for obj in both(fleet, path):
            assert obj["status"]["initializers"] == wanted
            assert dict(map(INITIALIZER.label, wanted)).items() <= obj["metadata"]["labels"].items()
            told = conditions.get(obj["status"]["conditions"], "WorkspaceInitialized")
            assert told is not None
            assert (told["status"], told["reason"]) == ("False", "InitializerExists")
    assert phase(fleet, "root:a") == "Ready"
    fleet.recheck(["root:x"])
    assert fleet.changes() == []
    assert_recovers(fleet, another)


def test_it_is_ready_when_all_are_done_and_stays_so(fleet: LoadedFleet, another: Another) -> None:
    begun(fleet)
    one, other = names(fleet, "base", "gold")
    done(fleet, "root:x", one)
    fleet.commit({f"{X}/app.yaml": configmap(n="1")})
    assert phase(fleet, "root:x") == "Initializing"
    assert cluster(fleet, "root:x")["status"]["initializers"] == [other]
    assert_recovers(fleet, another, "one")
    done(fleet, "root:x", other)
    for number in "23":
        fleet.recheck(["root:x"])
        fleet.commit({f"{X}/app.yaml": configmap(n=number)})
        assert phase(fleet, "root:x") == "Ready"
    for obj in both(fleet, "root:x"):
        assert obj["status"]["initializers"] == []
        told = conditions.get(obj["status"]["conditions"], "WorkspaceInitialized")
        assert told is not None
        assert (told["status"], told["lastTransitionTime"]) == ("True", LATER)
    assert cluster(fleet, "root:x")["spec"]["initializers"] == [one, other]
    new = assert_recovers(fleet, another, "both")
    new.commit({f"{X}/app.yaml": configmap(n="4")})
    assert phase(new, "root:x") == "Ready", "a recovery does not run a finished initializer again"


def test_a_first_load_runs_them_again(fleet: LoadedFleet, another: Another) -> None:
    begun(fleet)
    for name in names(fleet, "base", "gold"):
        done(fleet, "root:x", name)
    first = another(fleet, "first")
    first.load()
    assert phase(first, "root:x") == "Initializing"


@pytest.mark.parametrize("spec", [None, {}, {"initializer": True, "terminator": True}], ids=["gone", "no more", "more"])
def test_what_a_type_says_later_is_nothing_to_who_is_there(
    fleet: LoadedFleet, another: Another, spec: Object | None
) -> None:
    begun(fleet)
    wanted = names(fleet, "base", "gold")
    fleet.commit({f"{ROOT}/gold.json": kind("gold", **spec) if spec is not None else None})
    fleet.commit({f"{X}/app.yaml": configmap(n="1")})
    assert fleet.held() == {}
    assert cluster(fleet, "root:x")["spec"].get("initializers") == wanted
    assert cluster(fleet, "root:x")["status"]["initializers"] == wanted
    assert "terminators" not in cluster(fleet, "root:x")["status"]
    assert_recovers(fleet, another)


def test_one_that_was_there_before_waits_for_nobody(fleet: LoadedFleet, another: Another) -> None:
    fleet.commit({f"{ROOT}/gold.json": kind("gold"), f"{X}/workspace.yaml": of("gold")})
    fleet.commit({f"{ROOT}/gold.json": kind("gold", initializer=True)})
    assert phase(fleet, "root:x") == "Ready"
    assert "initializers" not in cluster(fleet, "root:x")["spec"]
    assert_recovers(fleet, another)


def test_one_without_a_good_commit_gets_them_with_its_first(fleet: LoadedFleet, another: Another) -> None:
    fleet.commit({**TYPES, f"{X}/workspace.yaml": of("gold"), f"{X}/bad.yaml": "kind: ["})
    assert fleet.workspace("root:x")["status"]["phase"] == "Initializing"
    assert "initializers" not in fleet.workspace("root:x")["status"]
    fleet.commit({f"{X}/bad.yaml": None})
    assert cluster(fleet, "root:x")["status"]["initializers"] == names(fleet, "base", "gold")
    assert phase(fleet, "root:x") == "Initializing"
    assert_recovers(fleet, another)


def test_terminators_stand_there_from_the_beginning(fleet: LoadedFleet, another: Another) -> None:
    fleet.commit({f"{ROOT}/gold.json": kind("gold", terminator=True), f"{X}/workspace.yaml": of("gold")})
    [name] = names(fleet, "gold")
    assert phase(fleet, "root:x") == "Ready"
    for obj in both(fleet, "root:x"):
        assert obj["status"]["terminators"] == [name]
        assert dict([TERMINATOR.label(name)]).items() <= obj["metadata"]["labels"].items()
    assert cluster(fleet, "root:x")["spec"]["terminators"] == [name]
    assert_recovers(fleet, another)
