"""Who belongs to whom: an index of ownerReferences, kept up from the store's log.

Written by garbage collection, read by who works with it too, safe from every thread. Holds only objects that have
owners. A UID counts in its own workspace alone: whoever writes another workspace's UID into a reference names nobody.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from apiserver.model.keys import Key

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


class Owners:
    """`seen` and `gone` may be told the same thing twice, or something older again: what was told last counts."""

    def __init__(self) -> None:
        self._dependents: dict[tuple[str, str], set[Key]] = {}
        self._references: dict[Key, tuple[Reference, ...]] = {}
        self._counts: dict[str, int] = {}
        self._lock = threading.Lock()

    def seen(self, key: Key, references: tuple[Reference, ...]) -> None:
        """The object now has these owners."""
        with self._lock:
            self._drop(key)
            if not references:
                return
            self._references[key] = references
            self._counts[key.cluster] = self._counts.get(key.cluster, 0) + 1
            for reference in references:
                self._dependents.setdefault((key.cluster, reference.uid), set()).add(key)

    def gone(self, key: Key) -> None:
        with self._lock:
            self._drop(key)

    def _drop(self, key: Key) -> None:
        references = self._references.pop(key, None)
        if references is None:
            return
        left = self._counts[key.cluster] - 1
        if left:
            self._counts[key.cluster] = left
        else:
            del self._counts[key.cluster]
        for uid in {r.uid for r in references}:
            found = self._dependents[key.cluster, uid]
            found.discard(key)
            if not found:
                del self._dependents[key.cluster, uid]

    def any(self, cluster: str) -> bool:
        """Whether anything there has an owner."""
        return cluster in self._counts

    def dependents(self, cluster: str, uid: str) -> list[Key]:
        with self._lock:
            return sorted(self._dependents.get((cluster, uid), ()))

    def references(self, key: Key) -> Sequence[Reference]:
        return self._references.get(key, ())

    def clear(self) -> None:
        with self._lock:
            self._dependents.clear()
            self._references.clear()
            self._counts.clear()
