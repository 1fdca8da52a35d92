"""A workspace that a commit takes away waits for what is in it, and is served until that is gone."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.recoveries import Another, assert_recovers
from support.settling import HELD, Settling, keep
from support.widgets import binding, crd, export, schema, widget

from apiserver.model import conditions
from apiserver.model.errors import StatusError
from apiserver.model.keys import Key
from apiserver.model.storagenames import BINDINGS, CRDS, WORKSPACES
from apiserver.registry import tree
from apiserver.registry.lifecycles import PHASE
from apiserver.registry.rest_checks import check_cluster
from apiserver.storage.protocol import Delete
from reconciler.layout.tree import ROOT
from reconciler.loading import departure

NAME = "widgets.example.io"
ROLES = "roles.rbac.authorization.k8s.io"
ROLE = """apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: cleaner, namespace: default}
rules: []
"""
KID = f"{A}/kid"


@pytest.fixture
def settle() -> Settling:
    return Settling()


@pytest.fixture
def awaited(fleet: LoadedFleet) -> LoadedFleet:
    """root:a goes, and has a Widget that waits for a finalizer, and who may let it go."""
    fleet.commit({f"{A}/crd.json": crd(), f"{A}/w.json": widget(size=1), f"{A}/role.yaml": ROLE})
    keep(fleet, "root:a", "w", NAME)
    fleet.delete({A: None})
    return fleet


def standing(fleet: LoadedFleet, path: str) -> set[str]:
    cluster = fleet.record(path).cluster
    return {f"{k.resource.partition('.')[0]}/{k.name}" for k in fleet.store.keys(cluster) if k.resource[0] != "~"}


def applied(fleet: LoadedFleet) -> tuple[str, str]:
    """Status and message of CommitApplied, as both objects of root:a have it."""
    cluster = fleet.get("root:a", "logicalclusters.core.kcp.io", "cluster", "")
    found = [fleet.condition(obj, "CommitApplied") for obj in (fleet.workspace("root:a"), cluster)]
    [said] = {(each["status"], each["message"]) for each in found}
    return said


def objects_of(fleet: LoadedFleet, cluster: str) -> list[Key]:
    return [key for key in fleet.store.keys(cluster) if not key.resource.startswith("~a")]


def test_it_stays_with_what_waits_and_what_that_needs(awaited: LoadedFleet, settle: Settling, another: Another) -> None:
    assert awaited.held() == {}
    assert awaited.record("root:a").leaves
    left = {"widgets/w", "customresourcedefinitions/widgets.example.io", "roles/cleaner", "namespaces/default"}
    assert standing(awaited, "root:a") == {*left, "logicalclusters/cluster"}
    assert awaited.get("root:a", NAME, "w")["metadata"]["deletionTimestamp"] == "2026-01-01T00:03:00Z"
    assert "deletionTimestamp" not in awaited.get("root:a", CRDS, NAME, "")["metadata"]
    for found, finalizer in (
        (awaited.workspace("root:a"), "core.kcp.io/logicalcluster"),
        (awaited.get("root:a", "logicalclusters.core.kcp.io", "cluster", ""), "core.kcp.io/logicalcluster-deletion"),
    ):
        assert found["metadata"]["finalizers"] == [finalizer]
        assert found["metadata"]["annotations"]["treeplane.dev/origin"] == "removed"
        assert found["status"]["phase"] == "Deleting"
        told = conditions.get(found["status"]["conditions"], "WorkspaceContentDeleted") or {}
        assert (told["status"], told["reason"]) == ("False", "SomeFinalizersRemain")
        assert "example.io/hold in 1 resource instances" in told["message"]
    settle(awaited)
    new = assert_recovers(awaited, another)
    for each in (awaited, new):
        cluster = each.record("root:a").cluster
        settle.let_go(each, "root:a", "w", NAME)
        assert "root:a" not in each.paths()
        assert objects_of(each, cluster) == []
        assert tree.leaving(each.store) == {}
        assert each.find("root", "workspaces.tenancy.kcp.io", "a", "") is None
    awaited.publish()
    recorded = awaited.recorded()
    assert recorded is not None
    assert not [path for path in recorded.paths() if path.startswith(f"{A}/")]
    assert recorded.facts().leaving == {}


def test_one_in_which_nothing_waits_goes_at_once(fleet: LoadedFleet) -> None:
    cluster = fleet.record("root:a").cluster
    fleet.delete({A: None})
    assert "root:a" not in fleet.paths()
    assert objects_of(fleet, cluster) == []


def test_no_commit_touches_it(awaited: LoadedFleet, another: Another) -> None:
    awaited.commit({f"{B}/app.yaml": configmap(a="c"), "README.md": "on"})
    awaited.recheck(awaited.paths())
    assert awaited.held() == {}
    assert awaited.record("root:a").leaves
    assert awaited.get("root:a", NAME, "w")
    assert_recovers(awaited, another)


def test_a_directory_at_its_path_is_held_until_it_has_gone(
    awaited: LoadedFleet, settle: Settling, another: Another
) -> None:
    before = awaited.record("root:a").cluster
    awaited.commit({f"{A}/workspace.yaml": "", f"{A}/new.yaml": configmap("new"), f"{KID}/workspace.yaml": ""})
    [[error]] = awaited.held().values()
    assert applied(awaited) == ("False", "held back: " + error)
    assert error.startswith(f"{A}:0: workspace root:a is being deleted still") or "is being deleted still" in error
    assert "root:a:kid" not in awaited.paths()
    settle(awaited)
    new = assert_recovers(awaited, another)
    for each in (awaited, new):
        settle.let_go(each, "root:a", "w", NAME)
        assert each.held() == {}
        assert each.record("root:a").cluster != before
        assert each.data("root:a", "new")
        assert "root:a:kid" in each.paths()
    assert_recovers(awaited, another, "third")


def test_a_directory_that_goes_again_is_forgotten(awaited: LoadedFleet, settle: Settling, another: Another) -> None:
    awaited.commit({f"{A}/workspace.yaml": "", f"{A}/new.yaml": configmap("new")})
    awaited.commit({A: None})
    assert awaited.held() == {}
    assert applied(awaited) == ("True", "a commit took it away")
    assert_recovers(awaited, another)
    settle.let_go(awaited, "root:a", "w", NAME)
    assert "root:a" not in awaited.paths()


def test_one_whose_place_goes_while_somebody_writes_is_not_taken_away_twice(awaited: LoadedFleet) -> None:
    awaited.commit({f"{A}/workspace.yaml": ""})
    head = awaited.record("root:a").head
    awaited.interleave("root", WORKSPACES, "a", lambda obj: obj["metadata"].update(labels={"seen": "late"}))
    awaited.commit({A: None})
    assert awaited.held() == {}
    assert awaited.workspace("root:a")["metadata"]["labels"] == {"seen": "late", PHASE: "Deleting"}
    assert applied(awaited) == ("True", "a commit took it away")
    assert awaited.record("root:a").head == head


def test_a_finalizer_set_at_the_last_moment_is_waited_for(awaited: LoadedFleet, settle: Settling) -> None:
    settle(awaited)
    awaited.interleave("root:a", ROLES, "cleaner", lambda obj: obj["metadata"].update(finalizers=HELD))
    settle.let_go(awaited, "root:a", "w", NAME)
    assert awaited.record("root:a").leaves
    told = awaited.condition(awaited.workspace("root:a"), "WorkspaceContentDeleted")
    assert "roles.rbac.authorization.k8s.io has 1 resource instances" in told["message"]


def test_children_are_waited_for(fleet: LoadedFleet, settle: Settling, another: Another) -> None:
    fleet.commit({f"{KID}/workspace.yaml": "", f"{KID}/crd.json": crd(), f"{KID}/w.json": widget(size=1)})
    keep(fleet, "root:a:kid", "w", NAME)
    fleet.delete({A: None})
    assert {*tree.leaving(fleet.store)} == {"root:a", "root:a:kid"}
    assert standing(fleet, "root:a") == {"workspaces/kid", "logicalclusters/cluster"}
    settle(fleet)
    new = assert_recovers(fleet, another)
    for each in (fleet, new):
        settle.let_go(each, "root:a:kid", "w", NAME)
        assert each.paths() == {"root", "root:b", *(p for p in each.paths() if p.startswith("root:compute"))}


def test_its_directory_may_be_anothers(fleet: LoadedFleet, settle: Settling, another: Another) -> None:
    group, place = f"{ROOT}/g", f"{ROOT}/g/c"
    said = {"crd.json": crd(), "w.json": widget(size=1), "app.yaml": configmap()}
    fleet.commit({f"{place}/workspace.yaml": "", **{f"{place}/{name}": text for name, text in said.items()}})
    keep(fleet, "root:c", "w", NAME)
    fleet.delete({f"{group}/workspace.yaml": "", f"{place}/app.yaml": configmap(n="2")})

    assert fleet.record("root:c").leaves
    assert fleet.record("root:g:c").served
    new = assert_recovers(fleet, another)
    for each in (fleet, new):
        settle.let_go(each, "root:c", "w", NAME)
        assert tree.workspace_at(each.store, "root:c") is None
    assert_recovers(fleet, another, "third")


def test_a_parent_follows_a_child_that_left_before(fleet: LoadedFleet, settle: Settling, another: Another) -> None:
    fleet.commit({f"{KID}/workspace.yaml": "", f"{KID}/crd.json": crd(), f"{KID}/w.json": widget(size=1)})
    keep(fleet, "root:a:kid", "w", NAME)
    fleet.delete({KID: None})
    fleet.delete({A: None})
    assert {*tree.leaving(fleet.store)} == {"root:a", "root:a:kid"}
    new = assert_recovers(fleet, another)
    for each in (fleet, new):
        settle.let_go(each, "root:a:kid", "w", NAME)
        assert "root:a" not in each.paths()


def test_consumers_and_providers(fleet: LoadedFleet, settle: Settling, another: Another) -> None:
    """Who takes something of it is served on; what it takes itself is served in it, also without the provider."""
    fleet.commit({f"{A}/schema.json": schema(), f"{A}/export.json": export()})
    fleet.commit({f"{B}/binding.json": binding("root:a"), f"{B}/w.json": widget(size=1)})
    keep(fleet, "root:b", "w", NAME)
    fleet.delete({B: None})
    fleet.delete({A: None})
    assert "root:a" not in fleet.paths()
    assert fleet.get("root:b", BINDINGS, "widgets", "")["status"]["phase"] == "Bound"
    assert any(kind.kind == "Widget" for kind in fleet.kinds("root:b"))
    new = assert_recovers(fleet, another, share=True)
    for each in (fleet, new):
        settle.let_go(each, "root:b", "w", NAME)
        assert "root:b" not in each.paths()


def test_a_word_of_what_is_left_is_kept_up(fleet: LoadedFleet, settle: Settling) -> None:
    fleet.commit({f"{A}/more.yaml": configmap("more")})
    keep(fleet, "root:a", "app", "configmaps")
    keep(fleet, "root:a", "more", "configmaps")
    fleet.delete({A: None})

    def said() -> str:
        found = fleet.workspace("root:a")["status"]["conditions"]
        return str((conditions.get(found, "WorkspaceContentDeleted") or {})["message"])

    assert "configmaps has 2 resource instances" in said()
    settle.let_go(fleet, "root:a", "app", "configmaps")
    assert "configmaps has 1 resource instances" in said()
    assert orjson.dumps(fleet.workspace("root:a"))


def test_what_is_left_is_told_though_somebody_writes_meanwhile(fleet: LoadedFleet, settle: Settling) -> None:
    """Both say what they wait for by a write to the same objects."""
    fleet.commit({f"{A}/more.yaml": configmap("more")})
    keep(fleet, "root:a", "app", "configmaps")
    keep(fleet, "root:a", "more", "configmaps")
    fleet.delete({A: None})
    cluster = fleet.record("root:a").cluster
    fleet.store.write(Delete(Key("configmaps", cluster, "default", "app"))).result()
    fleet.interleave("root", WORKSPACES, "a", lambda obj: obj["metadata"].update(labels={"seen": "late"}))
    departure.go_on(fleet.store, fleet.record("root:a"), "2026-01-01T00:10:00Z")
    workspace = fleet.workspace("root:a")
    assert workspace["metadata"]["labels"] == {"seen": "late", PHASE: "Deleting"}
    told = conditions.get(workspace["status"]["conditions"], "WorkspaceContentDeleted") or {}
    assert "configmaps has 1 resource instances" in str(told["message"])


def test_nothing_new_comes_into_it(awaited: LoadedFleet) -> None:
    kind = next(kind for kind in awaited.kinds("root:a") if kind.kind == "ConfigMap")
    for path, refused in (("root:a", True), ("root:b", False)):
        cluster = awaited.record(path).cluster
        at: Any = SimpleNamespace(store=awaited.store, cluster=cluster, kind=kind, marks={})
        expected = pytest.raises(StatusError, match="workspace root:a because it is being terminated")
        with expected if refused else nullcontext():
            check_cluster(at, Key("configmaps", cluster, "default", "new"))


def test_somebody_who_writes_meanwhile_is_not_lost(fleet: LoadedFleet) -> None:
    keep(fleet, "root:a", "app", "configmaps")
    fleet.commit({A: None})
    fleet.interleave("root:a", "configmaps", "app", lambda obj: obj["metadata"].update(labels={"seen": "late"}))
    fleet.allow()
    assert fleet.record("root:a").leaves
    metadata = fleet.get("root:a", "configmaps", "app")["metadata"]
    assert metadata["labels"] == {"seen": "late"}
    assert metadata["deletionTimestamp"]
