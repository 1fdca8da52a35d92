"""An object's residue is what git cannot tell of it, and is put back as it was."""

from __future__ import annotations

import copy
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.model.commits import own
from apiserver.model.identity import object_uid
from apiserver.model.keys import Key
from reconciler.plan import residue
from reconciler.plan.residue import IdentitySource

Object = dict[str, Any]

FIRST, LATER = "a" * 40, "b" * 40
HOME = IdentitySource("fleet", own(FIRST))
DEPLOYMENTS = Key("deployments.apps:9f86", "abc", "shop", "web")
UID = object_uid("fleet", DEPLOYMENTS, own(FIRST))
CREATED = "2026-01-01T00:00:00Z"


def deployment(*, commit: str = FIRST, path: str = "web.yaml", **more: Any) -> Object:
    given_metadata = more.pop("metadata", {})
    annotations = {
        "kcp.io/cluster": "abc",
        "treeplane.dev/source-path": path,
        "treeplane.dev/source-commit": commit,
        **given_metadata.pop("annotations", {}),
    }
    metadata = {"name": "web", "namespace": "shop", "uid": UID, "creationTimestamp": CREATED, "generation": 1}
    metadata |= {"labels": {"a": "b"}, "annotations": annotations, **given_metadata}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"replicas": 2}, **more}


def left(obj: Object, key: Key = DEPLOYMENTS) -> Object | None:
    return residue.of(key, obj, HOME)


def said(obj: Object, key: Key = DEPLOYMENTS) -> Object:
    """A residue without what names its object."""
    found = left(obj, key)
    assert found is not None
    assert found.pop("apiVersion") == obj["apiVersion"]
    assert found.pop("kind") == obj["kind"]
    for name in ("name", "namespace"):
        assert found["metadata"].pop(name, None) == obj["metadata"].get(name)
    if not found["metadata"]:
        del found["metadata"]
    return found


@pytest.mark.parametrize("more", [{}, {"status": None}, {"status": {}}, {"status": {"lastHeartbeatTime": "x"}}])
def test_what_follows_from_git_has_no_left(more: Object) -> None:
    assert left(deployment(**more)) is None


def test_a_status_leaves_one() -> None:
    status = {"replicas": 2, "availableReplicas": 1}
    assert said(deployment(status=status)) == {"status": status}


def test_what_a_later_commit_changed_says_which() -> None:
    found = said(deployment(commit=LATER, metadata={"generation": 3}))
    assert found == {"metadata": {"generation": 3, "annotations": {"treeplane.dev/source-commit": LATER}}}


def test_what_came_later_says_who_it_is() -> None:
    found = said(deployment(commit=LATER, metadata={"uid": "another", "creationTimestamp": "2026-02-02T00:00:00Z"}))
    assert found["metadata"] == {
        "uid": "another",
        "creationTimestamp": "2026-02-02T00:00:00Z",
        "annotations": {"treeplane.dev/source-commit": LATER},
    }


def test_heartbeats_are_left_out_at_any_depth() -> None:
    status = {
        "lastSyncerHeartbeatTime": "2026-01-01T00:00:00Z",
        "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "x", "lastTransitionTime": "y"}],
        "deep": {"lastHeartbeatTime": "x", "lastUpdateTime": "y", "lastProbeTime": None, "kept": 1},
    }
    assert said(deployment(status=status))["status"] == {
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "y"}],
        "deep": {"lastUpdateTime": "y", "lastProbeTime": None, "kept": 1},
    }


def test_only_a_heartbeat_changes_nothing() -> None:
    def owned(time: str) -> Object:
        entries = [{"manager": "kubelet", "operation": "Update", "subresource": "status", "time": time}]
        return deployment(metadata={"managedFields": entries}, status={"phase": "Ready", "lastHeartbeatTime": time})

    assert left(owned("2026-01-01T00:00:00Z")) == left(owned("2026-02-02T00:00:00Z"))


def test_conditions_are_sorted_and_other_lists_are_not() -> None:
    conditions = [{"type": t, "status": "True"} for t in ("Ready", "Available", "Progressing")]
    status = {"conditions": conditions, "addresses": [{"ip": "2"}, {"ip": "1"}], "names": ["b", "a"]}
    found = said(deployment(status=status))["status"]
    assert [c["type"] for c in found["conditions"]] == ["Available", "Progressing", "Ready"]
    assert found["addresses"] == [{"ip": "2"}, {"ip": "1"}]
    assert found["names"] == ["b", "a"]


def test_decisions_are_kept_and_others_annotations_are_not() -> None:
    decisions = {
        "scheduling.kcp.io/placement": "production",
        "internal.workload.kcp.io/synctarget": "eu-west",
        "treeplane.dev/decision": "x",
    }
    others = {"deployment.kubernetes.io/revision": "1", "plain": "x", "notkcp.io/x": "x"}
    assert said(deployment(metadata={"annotations": {**decisions, **others}})) == {
        "metadata": {"annotations": decisions}
    }


@pytest.mark.parametrize(
    ("resource", "status"),
    [
        ("workspaces.tenancy.kcp.io", {"phase": "Ready"}),
        ("apibindings.apis.kcp.io", {"phase": "Bound"}),
        ("customresourcedefinitions.apiextensions.k8s.io", {"storedVersions": ["v1"]}),
        ("namespaces", {"phase": "Active"}),
    ],
)
def test_a_status_that_follows_from_git_is_not_kept(resource: str, status: Object) -> None:
    key = Key(resource, "abc", "", "web")
    uid = object_uid("fleet", key, own(FIRST))
    assert left(deployment(metadata={"uid": uid}, status=status), key) is None


def test_what_is_said_of_a_namespace_leaves_one() -> None:
    conditions = [{"type": "NamespaceScheduled", "status": "True"}]
    obj = deployment(status={"phase": "Active", "conditions": conditions})
    assert said(obj, Key("namespaces", "abc", "", "web"))["status"] == {"phase": "Active", "conditions": conditions}


def test_of_a_secret_nothing_but_who_it_is_leaves_one() -> None:
    owners = [{"manager": "kubectl", "fieldsV1": {"f:data": {"f:password": {}}}}]
    secret = deployment(
        path="keys/secrets/root:shop/web.yaml",
        metadata={"uid": "u", "managedFields": owners, "finalizers": ["x/y"]},
        data={"password": "aHVudGVyMg=="},
    )
    secret |= {"apiVersion": "v1", "kind": "Secret"}
    found = said(secret, Key("secrets", "abc", "shop", "web"))
    assert found == {"metadata": {"uid": "u", "creationTimestamp": CREATED}}


@pytest.mark.parametrize(
    ("resource", "leaves_one"),
    [
        ("deployments.apps", True),
        ("widgets.example.io:9f86", True),
        ("namespaces", True),
        ("secrets", True),
        ("events", False),
        ("leases.coordination.k8s.io", False),
        ("logicalclusters.core.kcp.io", True),
        ("~workspaces", False),
        ("~summaries", False),
    ],
)
def test_which_resources_leave_one(resource: str, leaves_one: bool) -> None:
    assert residue.may_leave(Key(resource, "abc", "default", "x")) is leaves_one


def test_runtime_objects_are_those_that_say_so_themselves() -> None:
    runtime = {"metadata": {"annotations": {"treeplane.dev/origin": "runtime"}}}
    adopted = deployment(metadata={"annotations": {"treeplane.dev/origin": "runtime"}})
    quoting = deployment(data={"x": {"treeplane.dev/origin": "runtime"}})
    found = [residue.is_runtime(orjson.dumps(each)) for each in (runtime, adopted, quoting, deployment())]
    assert found == [True, False, False, False]


OWNERS = [
    {"manager": "kubectl", "operation": "Apply", "time": CREATED, "fieldsV1": {"f:spec": {"f:replicas": {}}}},
    {"manager": "operator", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}},
]


@given(
    finalizers=st.lists(st.sampled_from(["a/b", "c/d"]), max_size=2, unique=True),
    owners=st.sampled_from([[], OWNERS, OWNERS[:1]]),
    decisions=st.dictionaries(st.sampled_from(["scheduling.kcp.io/x", "treeplane.dev/y"]), st.text(max_size=3)),
    deleted=st.booleans(),
)
def test_what_was_given_is_given_back(
    finalizers: list[str], owners: list[Object], decisions: Object, deleted: bool
) -> None:
    obj = deployment(metadata={"annotations": decisions})
    obj["metadata"] |= {"finalizers": finalizers} if finalizers else {}
    obj["metadata"] |= {"managedFields": owners} if owners else {}
    obj["metadata"] |= {"deletionTimestamp": CREATED, "deletionGracePeriodSeconds": 0} if deleted else {}
    bare = deployment()
    residue.restore(bare, left(copy.deepcopy(obj)) or {})
    assert bare == obj


def test_what_waits_for_its_finalizers_and_is_no_files_leaves_one_whole() -> None:
    obj = deployment(metadata={"finalizers": ["a/b"], "deletionTimestamp": CREATED}, status={"replicas": 2})
    obj["metadata"]["annotations"] = {"kcp.io/cluster": "abc", "treeplane.dev/origin": "removed", "theirs": "x"}
    assert residue.is_ending(DEPLOYMENTS, orjson.dumps(obj))
    assert not residue.is_ending(DEPLOYMENTS, orjson.dumps(deployment()))
    assert not residue.is_ending(Key("secrets", "abc", "shop", "web"), orjson.dumps(obj))
    found = residue.ending(obj)
    assert found["metadata"]["annotations"] == {"theirs": "x"}
    assert residue.restored_ending(found, "abc") == obj


def namespace(**more: Any) -> Object:
    metadata = {"name": "default", "labels": {"kubernetes.io/metadata.name": "default"}, "uid": UID}
    metadata |= {"creationTimestamp": CREATED, "annotations": {"kcp.io/cluster": "abc"}, **more.pop("metadata", {})}
    made = {"kind": "Namespace", "apiVersion": "v1", "metadata": metadata, "spec": {"finalizers": ["kubernetes"]}}
    return {**made, "status": {"phase": "Active"}, **more}


@pytest.mark.parametrize(
    "more",
    [
        {"metadata": {"annotations": {"kcp.io/cluster": "abc", "example.treeplane.dev/decided": "x"}}},
        {"metadata": {"annotations": {"kcp.io/cluster": "abc", "treeplane.dev/source-commit": LATER}}},
        {"metadata": {"finalizers": ["example.io/wait"]}},
        {"metadata": {"generation": 2}},
        {"metadata": {"deletionTimestamp": CREATED}},
        {"metadata": {"managedFields": [{"manager": "m", "operation": "Update", "apiVersion": "v1"}]}},
        {"status": {"phase": "Terminating"}},
        {"status": {"phase": "Active", "conditions": [{"type": "X", "status": "True"}]}},
    ],
)
def test_a_namespace_of_which_something_is_recorded_is_not_taken_for_one_as_it_was_made(more: Object) -> None:
    key = Key("namespaces", "abc", "", "default")
    assert residue.is_none(key, orjson.dumps(namespace()))
    assert left(namespace(), key) is None
    assert left(namespace(**more), key) is not None
    assert not residue.is_none(key, orjson.dumps(namespace(**more)))
