"""What deleting an object comes to: marks, finalizers, generations; many at once."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.model.errors import StatusError, forbidden
from apiserver.model.keys import Key
from apiserver.registry import deletion, marking
from apiserver.registry.kinds import target_builtins
from apiserver.registry.objects import Objects
from apiserver.registry.rest_options import BACKGROUND, FOREGROUND, ORPHAN, Collection, DeleteOptions
from apiserver.storage.protocol import Delete, Put

Object = dict[str, Any]


def kind(resource: str, group: str = "") -> Any:
    return target_builtins().preferred(group, resource)


def obj(version: str, of: str, **metadata: Any) -> Object:
    return {"apiVersion": version, "kind": of, "metadata": {"name": "a", "namespace": "n", **metadata}}


@pytest.mark.parametrize(
    ("finalizers", "policy", "left"),
    [
        ([], "", None),
        ([], FOREGROUND, ["foregroundDeletion"]),
        ([], ORPHAN, ["orphan"]),
        (["x.io/a"], BACKGROUND, ["x.io/a"]),
        (["x.io/a", "orphan"], "", ["x.io/a", "orphan"]),
        (["orphan", "x.io/a"], FOREGROUND, ["x.io/a", "foregroundDeletion"]),
        (["foregroundDeletion"], BACKGROUND, None),
        (["foregroundDeletion"], "", ["foregroundDeletion"]),
    ],
)
def test_finalizers_follow_the_policy(finalizers: list[str], policy: str, left: list[str] | None) -> None:
    live = obj("apps/v1", "Deployment", finalizers=finalizers, generation=3)
    marked = marking.decided(kind("deployments", "apps"), live, DeleteOptions(policy=policy))
    if left is None:
        assert marked is None
        return
    assert marked is not None
    metadata = marked["metadata"]
    assert (metadata["finalizers"], metadata["generation"]) == (left, 4)
    assert marking.decided(kind("deployments", "apps"), marked, DeleteOptions()) == marked


def test_events_have_no_dependents() -> None:
    assert marking.decided(kind("events"), obj("v1", "Event"), DeleteOptions(policy=FOREGROUND)) is None


@pytest.mark.parametrize(("resource", "group"), [("replicationcontrollers", ""), ("jobs", "batch")])
def test_some_kinds_leave_their_dependents(resource: str, group: str) -> None:
    served = kind(resource, group)
    marked = marking.decided(served, obj(served.api_version, served.kind), DeleteOptions())
    assert marked is not None
    assert marked["metadata"]["finalizers"] == ["orphan"]
    assert marking.decided(served, obj(served.api_version, served.kind), DeleteOptions(policy=BACKGROUND)) is None


def pod(**spec: Any) -> Object:
    return {**obj("v1", "Pod", generation=1), "spec": {"terminationGracePeriodSeconds": 30, **spec}}


@pytest.mark.parametrize(
    ("spec", "grace", "seconds"),
    [
        ({}, None, None),
        ({"nodeName": "x"}, None, 30),
        ({"nodeName": "x"}, 5, 5),
        ({"nodeName": "x"}, -1, 1),
        ({"nodeName": "x"}, 0, None),
    ],
)
def test_pods_that_run_get_time(spec: Object, grace: int | None, seconds: int | None) -> None:
    marked = marking.decided(kind("pods"), pod(**spec), DeleteOptions(grace=grace))
    assert (marked and marked["metadata"]["deletionGracePeriodSeconds"]) == seconds
    if marked is not None:
        assert marked["metadata"]["generation"] == 2
        again = marking.decided(kind("pods"), marked, DeleteOptions(policy=FOREGROUND))
        assert again is marked
        assert marking.decided(kind("pods"), marked, DeleteOptions(grace=0)) is None


def test_a_pod_that_ended_goes_at_once() -> None:
    ended = {**pod(nodeName="x"), "status": {"phase": "Succeeded"}}
    assert marking.decided(kind("pods"), ended, DeleteOptions()) is None
    held = {**ended, "metadata": {**ended["metadata"], "finalizers": ["x.io/a"]}}
    marked = marking.decided(kind("pods"), held, DeleteOptions())
    assert marked is not None
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 0


def test_what_a_deletion_writes(store: Any) -> None:
    objects = Objects(store)
    key = Key("configmaps", "c", "n", "a")
    objects.create(key, obj("v1", "ConfigMap"))
    operation = deletion.operation(kind("configmaps"), store.get(key), DeleteOptions())
    assert operation == Delete(key, store.get(key).revision)
    operation = deletion.operation(kind("configmaps"), store.get(key), DeleteOptions(policy=ORPHAN))
    assert isinstance(operation, Put)
    store.write(operation).result()
    assert deletion.operation(kind("configmaps"), store.get(key), DeleteOptions()) is None


def collection(store: Any, **more: Any) -> Collection:
    return Collection(store, kind("configmaps"), target_builtins(), "c", **more)


def test_many_at_once(store: Any) -> None:
    objects = Objects(store)
    keys = [Key("configmaps", "c", "n", name) for name in ("a", "b", "held", "gone")]
    for key in keys[:3]:
        finalizers = ["x.io/hold"] if key.name == "held" else []
        objects.create(key, obj("v1", "ConfigMap", finalizers=finalizers))
    found = deletion.delete_many(collection(store), keys, DeleteOptions())
    assert [o["metadata"]["name"] for o in found] == ["a", "b", "held"]
    assert [key.name for key in store.data] == ["held"]
    assert found[2]["metadata"]["resourceVersion"] == str(store.get(keys[2]).revision)


def test_many_are_refused_together(store: Any) -> None:
    def refuse(verb: str, name: str, live: Object | None) -> None:
        raise forbidden("configmaps", "", name, "no")

    key = Key("configmaps", "c", "n", "a")
    Objects(store).create(key, obj("v1", "ConfigMap"))
    for options in (DeleteOptions(), DeleteOptions(dry_run=True)):
        with pytest.raises(StatusError):
            deletion.delete_many(collection(store, admit=refuse), [key], options)
    assert store.get(key)
