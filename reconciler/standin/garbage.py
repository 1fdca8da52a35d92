"""Garbage collection: what all owners have left goes too."""

from __future__ import annotations

from typing import Any

from apiserver.model import clock
from apiserver.model.keys import Key
from apiserver.model.kinds import split_api_version
from apiserver.storage.protocol import Delete
from reconciler.standin.world import CLUSTER, World, replacement

Object = dict[str, Any]


def collected(world: World, key: Key, obj: Object) -> bool:
    """Whether the object had owners and none is left; then it is deleted, or marked if it has finalizers."""
    references = obj["metadata"].get("ownerReferences")
    if not references or any(_stands(world, key.namespace, r) for r in references):
        return False
    metadata = obj["metadata"]
    if not metadata.get("finalizers"):
        world.write([Delete(key, int(metadata["resourceVersion"]))])
    elif not metadata.get("deletionTimestamp"):
        marked = {**metadata, "deletionTimestamp": clock.now(), "deletionGracePeriodSeconds": 0}
        world.write([replacement(key.resource, {**obj, "metadata": marked})])
    return True


def _stands(world: World, namespace: str, reference: Object) -> bool:
    """Whether the owner is there. One whose kind is not served cannot be known to be gone."""
    group, version = split_api_version(reference["apiVersion"])
    kind = world.kinds().by_kind(group, version, reference["kind"])
    if kind is None or not kind.storage:
        return True
    owner = world.objects.get(Key(kind.storage, CLUSTER, namespace if kind.namespaced else "", reference["name"]))
    return owner is not None and owner["metadata"].get("uid") == reference["uid"]
