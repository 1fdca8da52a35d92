"""What is wrong on the way to clusters: sync targets that are not ready, Placements that are not placed or not synced.

Of Placements an index knows those that are wrong; sync targets are few, and all are looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from apiserver.complaints.complaint import Complaint, ComplaintBatch, ComplaintKind, conditions_of, cut, said
from apiserver.complaints.workspaces import listed
from apiserver.model import conditions
from apiserver.model.keys import Key
from apiserver.model.storagenames import SYNC_TARGETS
from apiserver.registry import indexes, tree
from apiserver.storage.paging import pages
from apiserver.storage.protocol import Record, View

Object = dict[str, Any]

_OF_TARGETS = ("Ready", "LeaseHeld", "CredentialsValid", "InventoryExplained")
"""Conditions of a SyncTarget of which none is to be False; Ready is not to be Unknown either."""
_OF_PLACEMENTS = ("Scheduled", "Ready", "Synced")
"""In the order in which one follows from the other: the first tells."""


def of_clusters(view: View) -> Iterator[ComplaintBatch]:
    """Of all workspaces."""
    yield ComplaintBatch.of(_targets(view, (record for page in pages(view, SYNC_TARGETS) for record in page)))

    def told(key: Key, obj: Object) -> Iterator[Complaint]:
        return _placement(tree.path_named(view, key.cluster), key, obj)

    yield listed(view, indexes.AMISS, indexes.PLACEMENT_AMISS, told)


def of_cluster(view: View, cluster: str) -> Iterator[ComplaintBatch]:
    """Of one workspace."""
    for resource, told in ((SYNC_TARGETS, _target), (indexes.PLACEMENTS, _placement)):
        records = (record for page in pages(view, resource, cluster) for record in page)
        path = tree.path_named(view, cluster)
        yield ComplaintBatch.of(
            each for record in records for each in told(path, record.key, orjson.loads(record.value))
        )


def _targets(view: View, records: Iterable[Record]) -> Iterator[Complaint]:
    for record in records:
        obj = orjson.loads(record.value)
        found = list(_target("", record.key, obj))
        if found:  # a path is looked up for those alone
            yield from _target(tree.path_named(view, record.key.cluster), record.key, obj)


def _target(path: str, key: Key, obj: Object) -> Iterator[Complaint]:
    told = conditions_of(obj)
    wrong = [each for name in _OF_TARGETS if (each := conditions.get(told, name)) is not None and _is_wrong(each)]
    ready = conditions.get(told, "Ready")
    if ready is not None and ready.get("status") == "Unknown":
        wrong.insert(0, ready)
    if wrong:
        where, what = f"{path}:{key.name}", _text(wrong)
        yield Complaint(ComplaintKind.TARGET, where, what, _describe(path, "synctarget", key.name))


def _placement(path: str, key: Key, obj: Object) -> Iterator[Complaint]:
    told = conditions_of(obj)
    wrong = [each for name in _OF_PLACEMENTS if (each := conditions.get(told, name)) is not None and _is_wrong(each)]
    if wrong:
        where, what = f"{path}:{key.name}", _text(wrong[:1])
        yield Complaint(ComplaintKind.PLACEMENT, where, what, _describe(path, "placement", key.name))


def _is_wrong(told: Object) -> bool:
    return told.get("status") == "False"


def _text(wrong: list[Object]) -> str:
    return cut("; ".join(f"{each.get('reason', '')}: {each.get('message', '')}" for each in wrong))


def _describe(path: str, kind: str, name: str) -> str:
    return f"{said('kubectl', 'ws', path)} && {said('kubectl', 'describe', kind, name)}"
