"""Objects of storage stay while something uses them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.following import Following

from apiserver.model.keys import Key
from apiserver.registry.objects import Objects
from apiserver.registry.protection import FINALIZERS
from apiserver.storage.protocol import Store
from reconciler.controllers.protection import ATTRIBUTES, CLAIMS, PODS, VOLUMES, Protection

DYING = "2026-01-01T00:00:00Z"


class World:
    def __init__(self, store: Store) -> None:
        self.objects = Objects(store)
        self.follower = Following.of(store, Protection(store, lambda cluster: cluster == "c"))
        self.follower.start()

    def make(self, resource: str, name: str, *, cluster: str = "c", finalizers: Any = None, **content: Any) -> Key:
        """One that is to go, if its kind is protected."""
        namespace = "n" if resource in (PODS, CLAIMS) else ""
        metadata: dict[str, Any] = content.pop("metadata", {})
        if resource in FINALIZERS:
            metadata = {"finalizers": finalizers or [FINALIZERS[resource]], **metadata}
        key = Key(resource, cluster, namespace, name)
        self.objects.create(key, {"kind": "X", "apiVersion": "v1", "metadata": metadata, **content})
        return key

    def dies(self, key: Key) -> None:
        def marked(obj: Any) -> Any:
            obj["metadata"]["deletionTimestamp"] = DYING
            return obj

        self.objects.update(key, marked)

    def settled(self) -> None:
        self.until(lambda: self.follower.idle)

    def until(self, found: Callable[[], Any]) -> None:
        deadline = time.monotonic() + 10
        while not found():
            assert time.monotonic() < deadline, "it did not come"
            time.sleep(0.005)


@pytest.fixture
def world(store: Store) -> Iterator[World]:
    made = World(store)
    yield made
    made.follower.stop()


def uses(claim: str, node: str = "n1") -> Any:
    return {"nodeName": node, "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]}


def test_what_nobody_uses_goes(world: World) -> None:
    keys = [world.make(resource, "a") for resource in FINALIZERS]
    kept = world.make(CLAIMS, "more", finalizers=[FINALIZERS[CLAIMS], "other/finalizer"])
    world.settled()
    assert all(world.objects.get(key) is not None for key in keys)
    for key in (*keys, kept):
        world.dies(key)
    world.until(lambda: not any(world.objects.get(key) for key in keys))
    world.until(lambda: world.objects.get(kept)["metadata"]["finalizers"] == ["other/finalizer"])  # type: ignore[index]


def test_a_claim_stays_while_a_pod_on_a_node_uses_it(world: World) -> None:
    claim = world.make(CLAIMS, "data")
    pod = world.make(PODS, "p", spec=uses("data"))
    waiting = world.make(PODS, "waiting", spec=uses("data", ""))
    world.dies(claim)
    world.settled()
    assert world.objects.get(claim) is not None
    world.objects.delete(pod)
    world.until(lambda: world.objects.get(claim) is None)
    assert world.objects.get(waiting) is not None


def test_a_claim_of_a_pods_own_stays_until_the_pod_is_shut_down(world: World) -> None:
    claim = world.make(CLAIMS, "p-v")
    spec = {"nodeName": "n1", "volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {}}}]}
    pod = world.make(PODS, "p", spec=spec)
    world.dies(claim)
    world.settled()
    assert world.objects.get(claim) is not None

    def shut_down(obj: Any) -> Any:
        obj["metadata"].update(deletionTimestamp=DYING, deletionGracePeriodSeconds=0)
        return obj

    world.objects.update(pod, shut_down)
    world.until(lambda: world.objects.get(claim) is None)


def test_a_volume_stays_while_it_is_bound(world: World) -> None:
    volume = world.make(VOLUMES, "v", status={"phase": "Bound"})
    world.dies(volume)
    world.settled()
    assert world.objects.get(volume) is not None
    world.objects.update(volume, lambda obj: {**obj, "status": {"phase": "Released"}})
    world.until(lambda: world.objects.get(volume) is None)


def test_a_class_of_attributes_stays_while_it_is_named(world: World) -> None:
    attributes = world.make(ATTRIBUTES, "fast")
    claim = world.make(CLAIMS, "c", status={"currentVolumeAttributesClassName": "fast"})
    world.dies(attributes)
    world.settled()
    assert world.objects.get(attributes) is not None
    world.dies(claim)
    world.until(lambda: world.objects.get(attributes) is None)


def test_other_clusters_are_others(world: World) -> None:
    claim = world.make(CLAIMS, "a", cluster="other")
    world.dies(claim)
    mine = world.make(CLAIMS, "a")
    world.dies(mine)
    world.until(lambda: world.objects.get(mine) is None)
    assert world.objects.get(claim) is not None
