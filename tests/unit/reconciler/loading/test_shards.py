"""Which Shard a workspace is on: chosen by its labels when the workspace appears, and for good."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.loadedfleet import A, LoadedFleet, configmap
from support.recoveries import Another, assert_recovers, assert_same, recover

from apiserver.registry.tree import WorkspaceRecord

Object = dict[str, Any]

SHARDS, WORKSPACES, CLUSTERS = "shards.core.kcp.io", "workspaces.tenancy.kcp.io", "logicalclusters.core.kcp.io"
EU = "workspaces/root/eu.json"
C = "workspaces/root/c"
NO_MATCH = (
    f"{C}/workspace.yaml:1: no Shard that takes workspaces matches spec.location.selector "
    '{"matchLabels":{"region":"eu"}} (correct it, or declare such a Shard in root)'
)


def shard(name: str = "eu", *, unschedulable: bool = False, **labels: str) -> str:
    annotations = {"experimental.core.kcp.io/unschedulable": "true"} if unschedulable else {}
    metadata = {"name": name, "labels": labels, "annotations": annotations}
    return json.dumps({"apiVersion": "core.kcp.io/v1alpha1", "kind": "Shard", "metadata": metadata})


def workspace(selector: Object | None = None, **spec: Any) -> str:
    said = {"location": {"selector": selector}, **spec} if selector is not None else spec
    return json.dumps({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "spec": said})


def labelled(**labels: str) -> str:
    return workspace({"matchLabels": labels})


def conditions(found: Object) -> dict[str, Object]:
    return {each["type"]: each for each in found["status"]["conditions"]}


def annotations(found: Object) -> dict[str, str]:
    return {k: v for k, v in found["metadata"]["annotations"].items() if "shard" in k or "cluster" in k}


def record(fleet: LoadedFleet, path: str = "root:c") -> WorkspaceRecord:
    return fleet.record(path)


def test_the_server_is_a_shard(fleet: LoadedFleet) -> None:
    found = fleet.get("root", SHARDS, "root", "")
    assert found["metadata"]["labels"] == {"name": "root"}
    assert found["spec"] == {}


def test_whoever_chooses_nothing_is_there(fleet: LoadedFleet) -> None:
    cluster = record(fleet, "root:a").cluster
    assert annotations(fleet.workspace("root:a")) == {
        "core.kcp.io/shard": "root",
        "internal.tenancy.kcp.io/shard": "1pfxsevk",
        "internal.tenancy.kcp.io/cluster": cluster,
        "kcp.io/cluster": "root",
    }
    of_cluster = fleet.get("root:a", CLUSTERS, "cluster", "")
    assert annotations(of_cluster) == {"core.kcp.io/shard": "root", "kcp.io/cluster": cluster}


@pytest.mark.parametrize(
    "selector",
    [
        {"matchLabels": {"region": "eu"}},
        {"matchExpressions": [{"key": "region", "operator": "In", "values": ["eu", "us"]}]},
        {"matchExpressions": [{"key": "region", "operator": "Exists"}]},
    ],
)
def test_labels_choose_a_shard(fleet: LoadedFleet, another: Another, selector: Object) -> None:
    fleet.commit({EU: shard(region="eu"), f"{C}/workspace.json": workspace(selector), f"{C}/app.yaml": configmap()})
    assert fleet.held() == {}
    assert annotations(fleet.workspace("root:c"))["core.kcp.io/shard"] == "eu"
    assert annotations(fleet.get("root:c", CLUSTERS, "cluster", ""))["core.kcp.io/shard"] == "eu"
    assert fleet.data("root:c") == {"a": "b"}
    assert_recovers(fleet, another)


@pytest.mark.parametrize("selector", [None, {}, {"matchLabels": {"name": "root"}}])
def test_the_usual_shard_goes_before_others(fleet: LoadedFleet, selector: Object | None) -> None:
    fleet.commit({"workspaces/root/a.json": shard("a"), f"{C}/workspace.json": workspace(selector)})
    assert record(fleet).shard == "root"


def test_where_no_shard_matches_the_workspace_waits(fleet: LoadedFleet, another: Another) -> None:
    fleet.commit({f"{C}/workspace.yaml": labelled(region="eu"), f"{C}/app.yaml": configmap()})
    assert fleet.held() == {"root:c": [NO_MATCH]}
    assert not record(fleet).served
    found = fleet.workspace("root:c")
    assert found["status"]["phase"] == "Scheduling"
    told = conditions(found)["WorkspaceScheduled"]
    assert (told["status"], told["reason"]) == ("False", "Unschedulable")
    assert "WorkspaceInitialized" not in conditions(found)
    assert "core.kcp.io/shard" not in annotations(found)
    assert_recovers(fleet, another)


def test_and_goes_on_once_one_does(fleet: LoadedFleet, another: Another) -> None:
    fleet.commit({f"{C}/workspace.yaml": labelled(region="eu"), f"{C}/app.yaml": configmap()})
    fleet.commit({EU: shard(region="us")})
    assert set(fleet.held()) == {"root:c"}
    fleet.commit({EU: shard(region="eu")})
    assert fleet.held() == {}
    found = fleet.workspace("root:c")
    assert found["status"]["phase"] == "Ready"
    assert conditions(found)["WorkspaceScheduled"]["status"] == "True"
    assert annotations(found)["core.kcp.io/shard"] == "eu"
    assert fleet.data("root:c") == {"a": "b"}
    assert_recovers(fleet, another)


def test_it_may_choose_another(fleet: LoadedFleet) -> None:
    fleet.commit({f"{C}/workspace.yaml": labelled(region="eu")})
    fleet.commit({f"{C}/workspace.yaml": ""})
    assert record(fleet).shard == "root"
    assert annotations(fleet.workspace("root:c"))["core.kcp.io/shard"] == "root"


def test_a_shard_that_takes_none_is_chosen_by_none(fleet: LoadedFleet) -> None:
    fleet.commit({EU: shard(region="eu", unschedulable=True), f"{C}/workspace.yaml": labelled(region="eu")})
    assert fleet.held() == {"root:c": [NO_MATCH]}
    fleet.commit({EU: shard(region="eu")})
    assert fleet.held() == {}


def test_where_all_take_none_nothing_new_comes(fleet: LoadedFleet) -> None:
    fleet.commit({"workspaces/root/root.json": shard("root", unschedulable=True), f"{C}/workspace.yaml": ""})
    [error] = fleet.held()["root:c"]
    assert "no Shard takes a workspace: all of them are unschedulable" in error
    assert fleet.data("root:a") == {"a": "b"}


def test_whoever_is_on_a_shard_stays(fleet: LoadedFleet, another: Another) -> None:
    files = {EU: shard(region="eu"), f"{C}/workspace.yaml": labelled(region="eu"), f"{C}/app.yaml": configmap()}
    fleet.commit(files)
    fleet.commit({EU: None})
    fleet.commit({f"{C}/workspace.yaml": labelled(region="us"), f"{C}/app.yaml": configmap(a="c")})
    assert fleet.held() == {}
    assert fleet.data("root:c") == {"a": "c"}
    assert annotations(fleet.workspace("root:c"))["core.kcp.io/shard"] == "eu"
    fleet.publish()
    new = recover(fleet, another)
    assert_same(new, fleet)
    assert record(new).shard == "eu"


def test_what_is_no_selector_holds_the_workspace(fleet: LoadedFleet) -> None:
    fleet.commit({f"{C}/workspace.json": workspace({"matchExpressions": [{"key": "region", "operator": "In"}]})})
    [error] = fleet.held()["root:c"]
    assert "spec.location.selector.matchExpressions[0].values" in error


def test_a_first_load_finds_shards_beside_it(empty: LoadedFleet) -> None:
    empty.begin({EU: shard(region="eu"), f"{C}/workspace.yaml": labelled(region="eu"), f"{C}/app.yaml": configmap()})
    assert empty.held() == {}
    assert record(empty).shard == "eu"


def test_nobody_else_declares_shards(fleet: LoadedFleet) -> None:
    """Neither as Shards nor as something of that name, which lists over workspaces would show."""
    fleet.commit({f"{A}/eu.json": shard(region="eu")})
    [error] = fleet.held()["root:a"]
    assert 'no kind "Shard" in apiVersion "core.kcp.io/v1alpha1"' in error
    names = {"plural": "shards", "singular": "shard", "kind": "Shard", "listKind": "ShardList"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    spec = {"group": "core.kcp.io", "scope": "Cluster", "names": names, "versions": [version]}
    metadata = {"name": "shards.core.kcp.io", "annotations": {"api-approved.kubernetes.io": "unapproved"}}
    definition = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": metadata}
    fleet.commit({f"{A}/eu.json": None, f"{A}/crd.json": json.dumps({**definition, "spec": spec})})
    found = fleet.get("root:a", "customresourcedefinitions.apiextensions.k8s.io", "shards.core.kcp.io", "")
    assert conditions(found)["NamesAccepted"]["status"] == "False"


def test_forms_are_shared_on_any_shard(fleet: LoadedFleet) -> None:
    """What a workspace costs does not depend on the Shard: the store keeps what all say once."""
    many = {f"workspaces/root/n{n}/workspace.yaml": labelled(region="eu") for n in range(4)}
    fleet.commit({EU: shard(region="eu"), **many})
    assert {record(fleet, f"root:n{n}").shard for n in range(4)} == {"eu"}
    clusters = {annotations(fleet.workspace(f"root:n{n}"))["internal.tenancy.kcp.io/cluster"] for n in range(4)}
    assert clusters == {record(fleet, f"root:n{n}").cluster for n in range(4)}
