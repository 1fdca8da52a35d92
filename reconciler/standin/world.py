"""What the stand-in's controllers see of their target: objects, those they own, and one way to write.

Every write carries the revision it was decided on; where another writer came first it raises the store's Conflict, and
the loop looks again.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from apiserver.model.keys import Key
from apiserver.registry import codec
from apiserver.registry.objects import Objects, complete
from apiserver.storage.protocol import NEVER, Delete, Op, Put, Store
from reconciler.controllers.owners import dependents

CLUSTER = "target"
"""The logical cluster name of everything in an embedded target."""

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class StandInWorld:
    """`later(key, seconds)` looks at a key again after a while."""

    store: Store
    objects: Objects
    later: Callable[[Key, float], None]

    def get(self, resource: str, namespace: str, name: str) -> Object | None:
        return self.objects.get(Key(resource, CLUSTER, namespace, name))

    def children(self, owner: Object, resource: str) -> list[Object]:
        """Objects of `resource` whose controller is `owner`, by name, those that are being deleted left out."""
        uid = owner["metadata"]["uid"]
        keys = [k for k in dependents(self.store, CLUSTER, uid) if k.resource == resource]
        records = [r for r in self.store.get_many(keys) if r is not None]
        found = [codec.decode(r.value, r.revision) for r in records]
        return [o for o in found if _controlled(o, uid) and not o["metadata"].get("deletionTimestamp")]

    def write(self, ops: list[Op]) -> None:
        """All or nothing. Nothing at all costs nothing."""
        if ops:
            self.store.write(*ops).result()


def _controlled(obj: Object, uid: str) -> bool:
    references = obj["metadata"].get("ownerReferences") or ()
    return any(r["uid"] == uid and r.get("controller") for r in references)


def key_of(resource: str, obj: Object) -> Key:
    return Key(resource, CLUSTER, obj["metadata"].get("namespace", ""), obj["metadata"]["name"])


def creation(resource: str, obj: Object) -> Put:
    """Fails if there is one of that name."""
    key = key_of(resource, obj)
    return Put(key, codec.encode(complete(key, obj)), NEVER)


def replacement(resource: str, obj: Object) -> Put:
    """`obj` carries the metadata.resourceVersion that it was made from."""
    return Put(key_of(resource, obj), codec.encode(obj), int(obj["metadata"]["resourceVersion"]))


def removal(resource: str, obj: Object) -> Delete:
    return Delete(key_of(resource, obj), int(obj["metadata"]["resourceVersion"]))


def with_status(resource: str, obj: Object, status: Object) -> list[Op]:
    """The write of a new status, or none if it says what the object says already."""
    if obj.get("status") == status:
        return []
    return [replacement(resource, {**obj, "status": status})]


def owned(owner: Object, name: str, labels: dict[str, str], annotations: dict[str, str] | None = None) -> Object:
    """The metadata of an object that `owner` controls."""
    metadata: Object = {"name": name, "namespace": owner["metadata"]["namespace"], "labels": labels}
    if annotations:
        metadata["annotations"] = copy.copy(annotations)
    metadata["ownerReferences"] = [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    return metadata


def counts(**numbers: int) -> Object:
    """The numbers of a status as Kubernetes writes them: zeros are left out."""
    return {name: number for name, number in numbers.items() if number}
