"""PartitionSets have the Partitions that the Shards make of them, and no more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.following import Following

from apiserver.model import conditions, marks
from apiserver.model.keys import Key
from apiserver.registry import codec
from apiserver.registry.objects import Objects
from apiserver.registry.tree import FleetRecord, WorkspaceRecord, placed, put_fleet, put_workspace
from apiserver.storage.protocol import Put, Store
from reconciler.controllers.partitionsets import PARTITIONS, SETS, PartitionSets

SHARDS = "shards.core.kcp.io"
LAB = "labcluster000000"
SET = Key(SETS, LAB, "", "regions")

Object = dict[str, Any]
PutObject = Callable[..., None]


@pytest.fixture
def put(store: Store) -> PutObject:
    record = WorkspaceRecord("root:lab", LAB, "root")
    store.write(put_fleet(FleetRecord("fleet", loaded=True)), put_workspace(record), placed(record)).result()

    def write(key: Key, api: str, kind: str, **content: Any) -> None:
        labels, annotations = content.pop("labels", {}), {marks.CLUSTER: key.cluster, **content.pop("annotations", {})}
        metadata = {"name": key.name, "uid": f"uid-{key.name}", "labels": labels, "annotations": annotations}
        obj = {"apiVersion": api, "kind": kind, "metadata": metadata, **content}
        store.write(Put(key, codec.encode(obj))).result()

    return write


def shard(put: PutObject, name: str, **labels: str) -> None:
    put(Key(SHARDS, "root", "", name), "core.kcp.io/v1alpha1", "Shard", labels=labels)


def divide(put: PutObject, *dimensions: str) -> None:
    put(SET, "topology.kcp.io/v1alpha1", "PartitionSet", spec={"dimensions": list(dimensions)})


def follow(store: Store) -> Following:
    found = Following.of(store, PartitionSets(store))
    found.settle()
    return found


def regions(store: Store) -> list[str]:
    found = (p["spec"]["selector"]["matchLabels"]["region"] for p in Objects(store).list(PARTITIONS, LAB))
    return sorted(found)


def status(store: Store) -> tuple[int, str]:
    """How many it counts, and PartitionsReady."""
    found = Objects(store).get(SET)
    assert found is not None
    ready = conditions.get(found["status"]["conditions"], "PartitionsReady")
    assert ready is not None
    return found["status"]["count"], ready["status"]


def test_partitions_follow_the_shards(store: Store, put: PutObject) -> None:
    shard(put, "a", region="eu")
    shard(put, "b", region="us")
    divide(put, "region")
    following = follow(store)
    assert (regions(store), status(store)) == (["eu", "us"], (2, "True"))
    [one, _] = Objects(store).list(PARTITIONS, LAB)
    [owner] = one["metadata"]["ownerReferences"]
    assert (owner["name"], owner["uid"], owner["controller"]) == ("regions", "uid-regions", True)
    shard(put, "b", region="asia")
    following.settle()
    assert (regions(store), status(store)) == (["asia", "eu"], (2, "True"))
    before = store.revision()
    follow(store)
    assert store.revision() == before


def test_what_somebody_did_to_one_is_put_right(store: Store, put: PutObject) -> None:
    shard(put, "a", region="eu")
    divide(put, "region")
    following = follow(store)
    [made] = Objects(store).list(PARTITIONS, LAB)
    key = Key(PARTITIONS, LAB, "", made["metadata"]["name"])
    Objects(store).update(key, lambda obj: {**obj, "spec": {}})
    following.settle()
    assert regions(store) == ["eu"]
    Objects(store).delete(key)
    following.settle()
    assert regions(store) == ["eu"]


def test_what_is_not_its_own_stays_and_is_said(store: Store, put: PutObject) -> None:
    shard(put, "a", region="eu")
    divide(put, "region")
    follow(store)
    [made] = Objects(store).list(PARTITIONS, LAB)
    theirs = Key(PARTITIONS, LAB, "", made["metadata"]["name"])
    put(theirs, "topology.kcp.io/v1alpha1", "Partition", spec={"selector": {"matchLabels": {"region": "theirs"}}})
    follow(store)
    assert (regions(store), status(store)) == (["theirs"], (1, "False"))


def test_a_workspace_that_leaves_gets_none(store: Store, put: PutObject) -> None:
    shard(put, "a", region="eu")
    record = WorkspaceRecord("root:lab", LAB, "root", leaves=True)
    store.write(put_workspace(record), placed(record)).result()
    divide(put, "region")
    follow(store)
    assert regions(store) == []
