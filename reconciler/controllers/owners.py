"""Who belongs to whom: ownerReferences, and the index of them that the store keeps.

A UID counts in its own workspace alone: whoever writes another workspace's UID into a reference names nobody.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from apiserver.model.keys import Key
from apiserver.registry import indexes
from apiserver.storage.protocol import View

Object = dict[str, Any]

MENTION = b'"ownerReferences"'
"""Stands in the value of whatever has owners."""


class Reference(NamedTuple):
    """What an ownerReference says. `blocks`: a foreground deletion of the owner waits for the dependent."""

    api_version: str
    kind: str
    name: str
    uid: str
    blocks: bool


def references_of(obj: Object) -> tuple[Reference, ...]:
    """Incomplete ones are left out: they name nothing."""
    found = obj["metadata"].get("ownerReferences") or ()
    return tuple(
        Reference(r["apiVersion"], r["kind"], r["name"], r["uid"], bool(r.get("blockOwnerDeletion")))
        for r in found
        if r.get("apiVersion") and r.get("kind") and r.get("name") and r.get("uid")
    )


def dependents(store: View, cluster: str, uid: str) -> list[Key]:
    """Of an owner, in the order of keys."""
    return [found.key for found in store.indexed(indexes.OWNERS, indexes.owner(cluster, uid), whole=True)]


def has_dependents(store: View, cluster: str) -> bool:
    """Whether anything in a logical cluster has an owner."""
    return bool(store.indexed(indexes.OWNERS, indexes.owner(cluster, ""), limit=1))
