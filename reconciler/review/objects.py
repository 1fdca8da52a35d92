"""What a step changed of objects, read from the log of the store that it was written to.

Called by foresight. What the log has of an object first and last is what it was and what it is; what servers compute of
it is nobody's change.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

import orjson

from apiserver.model import marks
from apiserver.model.keys import Key
from apiserver.model.origins import file_of
from apiserver.model.storagenames import LOGICAL_CLUSTERS, WORKSPACES
from apiserver.model.tables import Table
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.paging import rows
from apiserver.storage.protocol import Store, View
from reconciler.layout.alike import same
from reconciler.loading.changeset import ChangeKind
from reconciler.review.fields import MOST, content, differences
from reconciler.review.result import ObjectDifference, ObjectName

Object = dict[str, Any]

_PAGE = 10_000
_ITSELF = frozenset({WORKSPACES, LOGICAL_CLUSTERS})
"""What comes and goes with a workspace is that workspace."""


class Versions(NamedTuple):
    """An object before and after; None where it is not there."""

    before: Object | None
    after: Object | None

    @property
    def value(self) -> Object:
        return self.after or self.before or {}


class ByWorkspace(NamedTuple):
    """Differences by logical cluster, and how many objects come, go or change besides, that no file declares."""

    declared: Mapping[str, list[ObjectDifference]]
    others: Mapping[str, int]


def written(store: Store, after: int) -> dict[Key, Versions]:
    """What changed since a revision, of what is an object to anybody."""
    first: dict[Key, bytes | None] = {}
    last: dict[Key, bytes | None] = {}
    while page := store.changes(after, _PAGE):
        for change in page:
            if not change.key.resource.startswith("~"):
                first.setdefault(change.key, change.previous)
                last[change.key] = change.value
        after = page[-1].revision
    return {key: Versions(_read(first[key]), _read(value)) for key, value in last.items()}


def present(store: Store, clusters: Iterable[str]) -> dict[Key, Versions]:
    """All objects of some logical clusters, as new."""
    keys = [key for cluster in clusters for key in store.keys(cluster) if not key.resource.startswith("~")]
    found = zip(keys, store.get_many(keys), strict=True)
    return {key: Versions(None, _read(record.value)) for key, record in found if record is not None}


def where(view: View) -> dict[str, str]:
    """By logical cluster, the paths of all workspaces."""
    found = (WorkspaceRecord.decode(*row) for row in rows(view, Table.WORKSPACES))
    return {record.cluster: record.path for record in found}


def _owner(key: Key, value: Object) -> str:
    """The logical cluster of the workspace that an object tells of: of a Workspace its own."""
    if key.resource != WORKSPACES:
        return key.cluster
    annotations = value["metadata"].get("annotations") or {}
    return str(annotations.get(marks.LOGICAL_CLUSTER) or key.cluster)


def by_workspace(pairs: Mapping[Key, Versions], paths: Mapping[str, str]) -> ByWorkspace:
    """`paths`: by logical cluster."""
    declared: defaultdict[str, list[ObjectDifference]] = defaultdict(list)
    others: Counter[str] = Counter()
    for key, pair in pairs.items():
        found = difference(key, pair, paths)
        if found is None:
            continue
        cluster = _owner(key, pair.value)
        if key.resource in _ITSELF:
            if found.change is ChangeKind.CONFIGURED:
                declared[cluster].append(found)
        elif found.file:
            declared[cluster].append(found)
        else:
            others[cluster] += 1
    for each in declared.values():
        each.sort(key=lambda found: (found.object.kind, found.object.namespace, found.object.name))
    return ByWorkspace(declared, others)


def difference(key: Key, pair: Versions, paths: Mapping[str, str]) -> ObjectDifference | None:
    """None where it says the same."""
    name, (before, after) = name_of(key, pair.value, paths), pair
    if before is None or after is None:
        change = ChangeKind.CREATED if before is None else ChangeKind.DELETED
        return ObjectDifference(name, change, file_of(pair.value)) if pair.value else None
    resource = _resource(key)
    was, now = content(resource, before), content(resource, after)
    file = file_of(after) or file_of(before)
    if same(was, now):
        moved = file_of(before) != file_of(after)
        return ObjectDifference(name, ChangeKind.MOVED, file) if moved and file else None
    fields = tuple(islice(differences(resource, was, now), MOST))
    return ObjectDifference(name, ChangeKind.CONFIGURED, file, fields) if fields else None


def name_of(key: Key, value: Object, paths: Mapping[str, str]) -> ObjectName:
    path = paths.get(key.cluster, key.cluster)
    return ObjectName(path, str(value.get("kind", "")), _resource(key), key.namespace, key.name)


def declared(pairs: Iterable[tuple[Key, Versions]]) -> Iterator[tuple[Key, Versions]]:
    """Those that a file declares."""
    return ((key, pair) for key, pair in pairs if file_of(pair.value))


def _resource(key: Key) -> str:
    return key.resource.partition(":")[0]


def _read(value: bytes | None) -> Object | None:
    return orjson.loads(value) if value is not None else None
