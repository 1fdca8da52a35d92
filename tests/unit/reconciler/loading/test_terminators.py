"""A workspace that is taken away is Terminating, with all that is in it, until its terminators are done."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.loadedfleet import LoadedFleet, configmap
from support.recoveries import Another, assert_recovers
from support.settling import Settling, keep

from apiserver.model import conditions
from apiserver.registry import tree
from apiserver.registry.lifecycles import PHASE, TERMINATOR, without

ROOT, X = "workspaces/root", "workspaces/root/x"
LOGICAL_CLUSTERS = "logicalclusters.core.kcp.io"
LATER = "2026-05-05T00:00:00Z"


def kind(name: str, **spec: Any) -> str:
    said = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "WorkspaceType", "metadata": {"name": name}}
    return json.dumps({**said, "spec": spec})


OF_GOLD = json.dumps({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "spec": {"type": {"name": "gold"}}})
FILES: dict[str, str | None] = {
    f"{ROOT}/base.json": kind("base", terminator=True),
    f"{ROOT}/gold.json": kind("gold", terminator=True, extend={"with": [{"name": "base"}]}),
    f"{X}/workspace.yaml": OF_GOLD,
    f"{X}/app.yaml": configmap(),
}


@pytest.fixture
def settle() -> Settling:
    return Settling()


@pytest.fixture
def going(fleet: LoadedFleet) -> LoadedFleet:
    """root:x is taken away; programs of two types are to act first."""
    fleet.commit(FILES)
    assert fleet.held() == {}
    fleet.delete({X: None})
    return fleet


def name(fleet: LoadedFleet, of: str) -> str:
    return f"{fleet.record('root').cluster}:{of}"


def done(fleet: LoadedFleet, program: str, path: str = "root:x") -> None:
    """As the view writes."""
    parent, _, base = path.rpartition(":")
    keys = fleet.key(path, LOGICAL_CLUSTERS, "cluster", ""), fleet.key(parent, "workspaces.tenancy.kcp.io", base, "")
    for key in keys:
        fleet.update(key, lambda obj: obj.update(without(obj, TERMINATOR, name(fleet, program), LATER)))


def phase(fleet: LoadedFleet) -> str:
    both = fleet.get("root:x", LOGICAL_CLUSTERS, "cluster", ""), fleet.workspace("root:x")
    [found] = {(obj["status"]["phase"], obj["metadata"]["labels"][PHASE]) for obj in both}
    assert found[0] == found[1]
    return str(found[0])


def is_there(fleet: LoadedFleet) -> bool:
    return tree.workspace_at(fleet.store, "root:x") is not None


def test_all_stays_until_they_are_done(going: LoadedFleet, settle: Settling, another: Another) -> None:
    settle(going)
    assert phase(going) == "Terminating"
    assert going.data("root:x") == {"a": "b"}
    told = conditions.get(going.workspace("root:x")["status"]["conditions"], "WorkspaceContentDeleted")
    assert told is not None
    assert (told["status"], told["reason"]) == ("False", "TerminatorExists")
    assert name(going, "base") in told["message"] and name(going, "gold") in told["message"]
    assert going.workspace("root:x")["metadata"]["deletionTimestamp"]
    new = assert_recovers(going, another, "both")
    done(going, "gold")
    settle(going)
    assert phase(going) == "Terminating"
    assert going.data("root:x") == {"a": "b"}
    assert_recovers(going, another, "one")
    done(going, "base")
    settle(going)
    assert not is_there(going)
    assert_recovers(going, another, "none")
    # A server that came in between goes on from there.
    others = Settling()
    for program in ("gold", "base"):
        assert phase(new) == "Terminating"
        done(new, program)
        others(new)
    assert not is_there(new)


def test_after_them_what_has_finalizers_is_waited_for(going: LoadedFleet, settle: Settling, another: Another) -> None:
    keep(going, "root:x", "app", "configmaps")
    for program in ("gold", "base"):
        assert going.get("root:x", "configmaps", "app")["metadata"].get("deletionTimestamp") is None
        done(going, program)
        settle(going)
    assert phase(going) == "Deleting"
    assert going.get("root:x", "configmaps", "app")["metadata"]["deletionTimestamp"]
    told = conditions.get(going.workspace("root:x")["status"]["conditions"], "WorkspaceContentDeleted")
    assert told is not None
    assert told["reason"] == "SomeFinalizersRemain"
    assert_recovers(going, another)
    settle.let_go(going, "root:x", "app", "configmaps")
    assert not is_there(going)


def test_what_commits_do_meanwhile_changes_nothing(going: LoadedFleet, settle: Settling, another: Another) -> None:
    going.commit({f"{X}/workspace.yaml": OF_GOLD, f"{X}/new.yaml": configmap("new")})
    assert set(going.held()) == {"root:x"}
    going.commit({f"{ROOT}/gold.json": None, f"{ROOT}/base.json": kind("base")})
    assert phase(going) == "Terminating"
    assert going.data("root:x") == {"a": "b"}
    assert_recovers(going, another)
    going.commit(FILES)
    for program in ("base", "gold"):
        done(going, program)
        settle(going)
    # The directory is another workspace's, whose own terminators begin anew.
    assert going.held() == {}
    assert going.get("root:x", LOGICAL_CLUSTERS, "cluster", "")["status"]["phase"] == "Ready"
    assert len(going.get("root:x", LOGICAL_CLUSTERS, "cluster", "")["status"]["terminators"]) == 2
    assert going.data("root:x", "new") is not None
    assert_recovers(going, another, "again")


def test_one_whose_type_has_none_goes_at_once(fleet: LoadedFleet) -> None:
    fleet.commit({**FILES, f"{ROOT}/gold.json": kind("gold"), f"{ROOT}/base.json": kind("base")})
    fleet.commit({f"{ROOT}/gold.json": kind("gold", terminator=True)})
    fleet.delete({X: None})
    assert not is_there(fleet)


def test_a_workspace_above_waits_for_it(fleet: LoadedFleet, settle: Settling, another: Another) -> None:
    kid = f"{ROOT}/a/kid"
    fleet.commit({**FILES, f"{kid}/workspace.yaml": OF_GOLD})
    fleet.delete({f"{ROOT}/a": None})
    settle(fleet)
    assert fleet.workspace("root:a")["status"]["phase"] == "Deleting"
    assert fleet.workspace("root:a:kid")["status"]["phase"] == "Terminating"
    assert_recovers(fleet, another)
    for program in ("gold", "base"):
        done(fleet, program, "root:a:kid")
        settle(fleet)
    assert tree.workspace_at(fleet.store, "root:a") is None
