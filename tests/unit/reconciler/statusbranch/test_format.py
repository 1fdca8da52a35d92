"""The canonical form of what goes to the status branch."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.model.keys import Key
from reconciler.statusbranch import format

Object = dict[str, Any]


def deployment(**more: Any) -> Object:
    metadata = {"name": "web", "namespace": "shop", "uid": "u", "labels": {"a": "b"}, **more.pop("metadata", {})}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"replicas": 2}, **more}


def written(obj: Object) -> Object:
    data = format.status_file(obj)
    assert data is not None
    return format.load(data)


def test_a_file_holds_what_names_the_object_and_its_status() -> None:
    data = format.status_file(deployment(status={"replicas": 2, "availableReplicas": 1}))
    assert data == (
        b"apiVersion: apps/v1\n"
        b"kind: Deployment\n"
        b"metadata:\n"
        b"  name: web\n"
        b"  namespace: shop\n"
        b"status:\n"
        b"  availableReplicas: 1\n"
        b"  replicas: 2\n"
    )


@pytest.mark.parametrize("more", [{}, {"status": None}, {"status": {}}, {"status": {"lastHeartbeatTime": "x"}}])
def test_without_a_status_there_is_no_file(more: Object) -> None:
    assert format.status_file(deployment(**more)) is None


def test_a_cluster_scoped_object_has_no_namespace() -> None:
    obj = deployment(status={"phase": "Bound"})
    del obj["metadata"]["namespace"]
    assert written(obj)["metadata"] == {"name": "web"}


def test_heartbeats_are_left_out_at_any_depth() -> None:
    status = {
        "lastSyncerHeartbeatTime": "2026-01-01T00:00:00Z",
        "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "x", "lastTransitionTime": "y"}],
        "deep": {"lastHeartbeatTime": "x", "lastUpdateTime": "y", "lastProbeTime": None, "kept": 1},
    }
    assert written(deployment(status=status))["status"] == {
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "y"}],
        "deep": {"lastUpdateTime": "y", "lastProbeTime": None, "kept": 1},
    }


def test_only_a_heartbeat_changes_no_byte() -> None:
    one = deployment(status={"phase": "Ready", "lastSyncerHeartbeatTime": "2026-01-01T00:00:00Z"})
    other = deployment(status={"lastSyncerHeartbeatTime": "2026-02-02T00:00:00Z", "phase": "Ready"})
    assert format.status_file(one) == format.status_file(other)


def test_conditions_are_sorted_and_other_lists_are_not() -> None:
    conditions = [{"type": t, "status": "True"} for t in ("Ready", "Available", "Progressing")]
    status = {"conditions": conditions, "addresses": [{"ip": "2"}, {"ip": "1"}], "names": ["b", "a"]}
    found = written(deployment(status=status))["status"]
    assert [c["type"] for c in found["conditions"]] == ["Available", "Progressing", "Ready"]
    assert found["addresses"] == [{"ip": "2"}, {"ip": "1"}]
    assert found["names"] == ["b", "a"]


def test_decisions_are_kept_and_marks_and_others_annotations_are_not() -> None:
    annotations = {
        "scheduling.kcp.io/placement": "production",
        "internal.workload.kcp.io/synctarget": "eu-west",
        "treeplane.dev/decision": "x",
        "treeplane.dev/source-path": "a.yaml",
        "treeplane.dev/source-commit": "c",
        "treeplane.dev/origin": "runtime",
        "kcp.io/cluster": "abc",
        "deployment.kubernetes.io/revision": "1",
        "plain": "x",
        "notkcp.io/x": "x",
    }
    found = written(deployment(metadata={"annotations": annotations}, status={"replicas": 1}))
    assert found["metadata"]["annotations"] == {
        "scheduling.kcp.io/placement": "production",
        "internal.workload.kcp.io/synctarget": "eu-west",
        "treeplane.dev/decision": "x",
    }


def test_text_survives_as_it_is() -> None:
    status = {"message": "Grüße: 'x' # no\nsecond line", "yes": "yes", "number": "1e3", "long": "word " * 60}
    assert written(deployment(status=status))["status"] == status


@pytest.mark.parametrize(
    ("resource", "recorded"),
    [
        ("deployments.apps", True),
        ("widgets.example.io:9f86", True),
        ("placements.scheduling.kcp.io", True),
        ("secrets", False),
        ("events", False),
        ("leases.coordination.k8s.io", False),
        ("workspaces.tenancy.kcp.io", False),
        ("apibindings.apis.kcp.io", False),
        ("customresourcedefinitions.apiextensions.k8s.io", False),
        ("~workspaces", False),
        ("~summaries", False),
    ],
)
def test_which_resources_are_recorded(resource: str, recorded: bool) -> None:
    assert format.is_recorded(Key(resource, "abc", "default", "x")) is recorded


@pytest.mark.parametrize(
    ("key", "path"),
    [
        (Key("deployments.apps", "c", "shop", "web"), "d/_status/shop/deployments.apps/web.yaml"),
        (Key("widgets.example.io:9f86", "c", "shop", "w"), "d/_status/shop/widgets.example.io/w.yaml"),
        (Key("placements.scheduling.kcp.io", "c", "", "p"), "d/_status/_/placements.scheduling.kcp.io/p.yaml"),
    ],
)
def test_where_a_status_stands(key: Key, path: str) -> None:
    assert format.status_path("d", key) == path


def test_where_a_workspace_stands() -> None:
    assert format.directory_of("root:shop:web", "workspaces/root/7f/shop/web") == "workspaces/root/7f/shop/web"
    assert format.directory_of("root:compute", "") == "workspaces/root/compute"
