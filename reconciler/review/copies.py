"""What becomes of objects' copies on sync targets. Called by foresight, while the store stands.

A copy follows its object as long as both run on the same target; where a namespace goes elsewhere, all in it does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from apiserver.model.keys import Key
from apiserver.registry.served import ServedKind
from apiserver.storage.protocol import Store
from reconciler.layout.alike import same
from reconciler.plan.syncable import stays_upstream
from reconciler.review.fields import content
from reconciler.review.objects import Versions, name_of
from reconciler.review.places import PlacedNamespaces, RunsThere
from reconciler.review.result import CopyChange, TargetDifference
from reconciler.syncing.upstream import goes_down

Object = dict[str, Any]


class PlacedSides(NamedTuple):
    """Before and after."""

    before: PlacedNamespaces
    after: PlacedNamespaces


def differences(
    store: Store,
    pairs: Mapping[Key, Versions],
    sides: PlacedSides,
    paths: Mapping[str, str],
) -> Iterator[TargetDifference]:
    """`store`: as it is after; `paths`: by logical cluster, those of before too."""
    found: defaultdict[str, list[CopyChange]] = defaultdict(list)
    copies = _Copies(store, sides, paths)
    for target, copy in copies.all(pairs):
        found[target].append(copy)
    for target in sorted(found):
        yield TargetDifference(target, tuple(sorted(found[target], key=lambda each: (each.object, each.verb))))


class _Copies:
    def __init__(self, store: Store, sides: PlacedSides, paths: Mapping[str, str]) -> None:
        self._store, self._sides, self._paths = store, sides, paths

    def all(self, pairs: Mapping[Key, Versions]) -> Iterator[tuple[str, CopyChange]]:
        moved = {at for at in {*self._sides.before.places, *self._sides.after.places} if self._goes_elsewhere(at)}
        for key, pair in pairs.items():
            if key.namespace and (key.cluster, key.namespace) not in moved:
                yield from self._of(key, pair)
        for cluster, namespace in sorted(moved):
            for key, pair in self._inside(cluster, namespace, pairs):
                yield from self._of(key, pair)

    def _goes_elsewhere(self, at: tuple[str, str]) -> bool:
        before, after = self._sides.before.at(*at), self._sides.after.at(*at)
        return {each.target for each in before} != {each.target for each in after}

    def _inside(self, cluster: str, namespace: str, pairs: Mapping[Key, Versions]) -> Iterator[tuple[Key, Versions]]:
        """All of a namespace, as it was and is."""
        keys = {key for key in pairs if (key.cluster, key.namespace) == (cluster, namespace)}
        for kind in self._kinds(cluster):
            if kind.storage and kind.namespaced and kind.storage_version:
                records = self._store.scan(kind.storage, cluster, namespace, count=False).records
                keys |= {record.key for record in records}
        for key in sorted(keys):
            record = self._store.get(key) if key not in pairs else None
            value = orjson.loads(record.value) if record is not None else None
            yield key, pairs.get(key) or Versions(value, value)

    def _of(self, key: Key, pair: Versions) -> Iterator[tuple[str, CopyChange]]:
        before = self._targets(key, pair.before, self._sides.before)
        after = self._targets(key, pair.after, self._sides.after)
        if not before and not after:
            return
        name = name_of(key, pair.value, self._paths)
        for target in sorted({*before, *after}):
            place = after.get(target) or before[target]
            if target not in before:
                yield target, CopyChange("gets", name, place.placement, place.why)
            elif target not in after:
                gone = self._why_gone(key, target, pair)
                yield target, CopyChange("loses", name, place.placement, gone)
            elif self._differs(key, pair):
                yield target, CopyChange("changes", name, place.placement, place.why)

    def _why_gone(self, key: Key, target: str, pair: Versions) -> str:
        if pair.after is None:
            return "it is deleted"
        now = self._sides.after.at(key.cluster, key.namespace)
        return f"it {now[0].why}" if now else f"no Placement has its namespace run on {target} any more"

    def _differs(self, key: Key, pair: Versions) -> bool:
        if pair.before is None or pair.after is None:
            return False
        resource = key.resource.partition(":")[0]
        return not same(content(resource, pair.before), content(resource, pair.after))

    def _targets(self, key: Key, value: Object | None, placed: PlacedNamespaces) -> dict[str, RunsThere]:
        places = placed.at(key.cluster, key.namespace) if value is not None else ()
        kind = self._kind(key) if places else None
        if kind is None or value is None or stays_upstream(kind.group_resource, value):
            return {}
        return {each.target: each for each in places if goes_down(kind, placed.accepts.get(each.target, {}))}

    def _kind(self, key: Key) -> ServedKind | None:
        return next((kind for kind in self._kinds(key.cluster) if kind.storage == key.resource), None)

    def _kinds(self, cluster: str) -> list[ServedKind]:
        """Those that its workspace serves or did."""
        tables = (side.kinds.get(cluster) for side in (self._sides.after, self._sides.before))
        return [kind for table in tables if table is not None for kind in table.all()]
