"""Which workspaces are wrong: held, their source away, something in them locked.

Found by what the store lists of such, so it costs what is listed, however many workspaces there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import orjson

from apiserver.complaints.complaint import MOST, Complaint, ComplaintBatch, ComplaintKind, conditions_of, cut, said
from apiserver.model import conditions
from apiserver.model.keys import Key
from apiserver.model.storagenames import LOGICAL_CLUSTERS
from apiserver.model.tables import Table
from apiserver.registry import indexes, pins, tree
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.declared import Index
from apiserver.storage.paging import rows
from apiserver.storage.protocol import View

Object = dict[str, Any]


def of_workspaces(view: View) -> Iterator[ComplaintBatch]:
    """Of all."""
    held = [row.key for row in rows(view, Table.HELD)]
    records = (tree.workspace_at(view, path) for path in held[:MOST])
    yield ComplaintBatch([_held(record) for record in records if record is not None], len(held))
    yield listed(view, indexes.AMISS, indexes.SOURCE_AMISS, lambda key, obj: _sources(_path(view, key), obj))
    yield listed(view, indexes.LOCKING, indexes.LOCKED, lambda key, obj: _locked(_path(view, key), obj))


def of_workspace(view: View, record: WorkspaceRecord) -> Iterator[ComplaintBatch]:
    """Of one."""
    if record.errors:
        yield ComplaintBatch.of([_held(record)])
    found = view.get(Key(LOGICAL_CLUSTERS, record.cluster, "", "cluster"))
    if found is not None:
        obj = orjson.loads(found.value)
        yield ComplaintBatch.of(_sources(record.path, obj))
        yield ComplaintBatch.of(_locked(record.path, obj))


def listed(view: View, index: Index, term: str, told: Callable[[Key, Object], Iterable[Complaint]]) -> ComplaintBatch:
    """Of the first objects under a term what is told of each; the index knows how many there are."""
    keys = [entry.key for entry in view.indexed(index, term, whole=True, limit=MOST)]
    found = [(record.key, orjson.loads(record.value)) for record in view.get_many(keys) if record is not None]
    complaints = [each for key, obj in found for each in told(key, obj)]
    return ComplaintBatch(complaints, max(view.tally(index, term), len(complaints)))


def _held(record: WorkspaceRecord) -> Complaint:
    first, more = record.errors[0], len(record.errors) - 1
    text = f"{cut(first)} (and {more} more)" if more else cut(first)
    return Complaint(ComplaintKind.HELD, record.path, text, said("treeplane", "validate", "-w", record.path))


def _sources(path: str, obj: Object) -> Iterator[Complaint]:
    wrong = [
        each for each in conditions_of(obj) if each.get("type") in indexes.OF_SOURCES and each.get("status") == "False"
    ]
    if wrong:
        text = "; ".join(f"{each.get('reason', '')}: {each.get('message', '')}" for each in wrong)
        yield Complaint(ComplaintKind.SOURCE, path, cut(text), said("treeplane", "reconcile-now", path))


def _locked(path: str, obj: Object) -> Iterator[Complaint]:
    applied = conditions.get(conditions_of(obj), pins.APPLIED)
    if applied is not None and applied.get("reason") == indexes.SECRETS_LOCKED:
        yield Complaint(ComplaintKind.SECRET, path, cut(str(applied.get("message", ""))))


def _path(view: View, key: Key) -> str:
    return tree.path_named(view, key.cluster) or key.cluster
