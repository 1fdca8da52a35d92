"""Whether the owners stand that an object names: found by kind, name, UID and place, as they are stored now.

Called by garbage for each object that it judges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

from apiserver.model.keys import Key
from apiserver.model.kinds import split_api_version
from apiserver.registry.kindtable import KindTable
from apiserver.registry.rest_options import FOREGROUND_FINALIZER
from apiserver.storage.protocol import Store
from reconciler.controllers import misplaced
from reconciler.controllers.owners import Reference

Object = dict[str, Any]

_DEPARTED = 10_000


class UndecidedOwner(Exception):
    """A reference whose kind is not served: its owner cannot be known to be gone."""


class Invalid(Exception):
    """A cluster-scoped object that names a namespaced owner: Kubernetes leaves it alone for good."""


@dataclass(slots=True)
class Classes:
    """UIDs of an object's owners. `solid`: they stand; `dangling`: nobody; `waiting`: in foreground deletion."""

    solid: set[str] = field(default_factory=set)
    dangling: set[str] = field(default_factory=set)
    waiting: set[str] = field(default_factory=set)


class OwnerLookup:
    """`kinds` of a logical cluster, as they are served now."""

    def __init__(self, store: Store, kinds: Callable[[str], KindTable]) -> None:
        self._store = store
        self._kinds = kinds
        self._departed: set[tuple[str, str]] = set()

    def departed(self, cluster: str, uid: str) -> None:
        """An owner went: nobody needs to look where else it is."""
        if len(self._departed) >= _DEPARTED:
            self._departed.clear()
        self._departed.add((cluster, uid))

    def classify(self, key: Key, obj: Object, references: Iterable[Reference]) -> Classes:
        """Raises Undecided, Invalid."""
        found = Classes()
        for reference in references:
            owner = self._owner(key, obj, reference)
            if owner is None:
                found.dangling.add(reference.uid)
            elif owner.get("deletionTimestamp") and FOREGROUND_FINALIZER in (owner.get("finalizers") or ()):
                found.waiting.add(reference.uid)
            else:
                found.solid.add(reference.uid)
        return found

    def _owner(self, key: Key, obj: Object, reference: Reference) -> Object | None:
        """The owner's metadata, if it stands."""
        try:
            group, version = split_api_version(reference.api_version)
        except ValueError:
            raise UndecidedOwner from None
        kind = self._kinds(key.cluster).by_kind(group, version, reference.kind)
        if kind is None or not kind.storage:
            if (key.cluster, reference.uid) in self._departed:
                return None  # it went with its kind
            raise UndecidedOwner
        if kind.namespaced and not key.namespace:
            self._misplaced(key, obj, kind.storage, reference)
            raise Invalid
        namespace = key.namespace if kind.namespaced else ""
        record = self._store.get(Key(kind.storage, key.cluster, namespace, reference.name))
        metadata: Object = orjson.loads(record.value)["metadata"] if record is not None else {}
        if metadata.get("uid") == reference.uid:
            return metadata
        if kind.namespaced:
            self._misplaced(key, obj, kind.storage, reference)
        return None

    def _misplaced(self, key: Key, obj: Object, resource: str, reference: Reference) -> None:
        """An owner that went is no mistake of whoever wrote the reference."""
        if (key.cluster, reference.uid) in self._departed:
            return
        if misplaced.stands_elsewhere(self._store, resource, key.cluster, reference):
            misplaced.report(self._store, key, obj, reference)
