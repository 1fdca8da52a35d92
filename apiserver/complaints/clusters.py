"""What is wrong on the way to clusters: sync targets that are not ready, Placements that are not placed or not synced.

Of Placements an index knows those that are wrong; sync targets are few, and all are looked at. What is so only since a
sync target was not asked yet, as in the first second of a server, is no trouble: one line tells it, as a beginning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from apiserver.complaints.complaint import Complaint, ComplaintBatch, ComplaintKind, conditions_of, cut, said
from apiserver.complaints.workspaces import listed
from apiserver.model import clock, conditions
from apiserver.model.conditions import Condition
from apiserver.model.counts import some_of
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
_PATIENCE = 10.0
"""Seconds that a sync target may take to be asked for the first time before that is a complaint."""
_NAMED = 3


def of_clusters(view: View, now: float) -> Iterator[ComplaintBatch]:
    """Of all workspaces."""

    def told(key: Key, obj: Object) -> Iterator[Complaint]:
        return _placement(tree.path_named(view, key.cluster), key, obj, now)

    records = (record for page in pages(view, SYNC_TARGETS) for record in page)
    targets = ComplaintBatch.of(_targets(view, records, now))
    yield from _beginning_apart([targets, listed(view, indexes.AMISS, indexes.PLACEMENT_AMISS, told)])


def of_cluster(view: View, cluster: str, now: float) -> Iterator[ComplaintBatch]:
    """Of one workspace."""
    found = []
    for resource, told in ((SYNC_TARGETS, _target), (indexes.PLACEMENTS, _placement)):
        records = (record for page in pages(view, resource, cluster) for record in page)
        path = tree.path_named(view, cluster)
        complaints = (each for record in records for each in told(path, record.key, orjson.loads(record.value), now))
        found.append(ComplaintBatch.of(complaints))
    yield from _beginning_apart(found)


def _beginning_apart(batches: Iterable[ComplaintBatch]) -> Iterator[ComplaintBatch]:
    """Without what waits for a sync target to be asked for the first time, and that in one line."""
    waiting = []
    for batch in batches:
        rest = [each for each in batch.listed if each.kind != ComplaintKind.STARTING]
        waiting += [each.where for each in batch.listed if each.kind == ComplaintKind.STARTING]
        yield ComplaintBatch(rest, batch.number - (len(batch.listed) - len(rest)))
    if waiting:
        what = "a sync target has not been asked yet, as right after a start: it is known in a moment"
        yield ComplaintBatch.of([Complaint(ComplaintKind.STARTING, some_of(waiting, _NAMED), what)])


def _targets(view: View, records: Iterable[Record], now: float) -> Iterator[Complaint]:
    for record in records:
        obj = orjson.loads(record.value)
        found = list(_target("", record.key, obj, now))
        if found:  # a path is looked up for those alone
            yield from _target(tree.path_named(view, record.key.cluster), record.key, obj, now)


def _target(path: str, key: Key, obj: Object, now: float) -> Iterator[Complaint]:
    told = conditions_of(obj)
    wrong = [each for name in _OF_TARGETS if (each := conditions.get(told, name)) is not None and _is_wrong(each)]
    ready = conditions.get(told, "Ready")
    if ready is not None and ready.get("status") == "Unknown":
        wrong.insert(0, ready)
    if wrong:
        where, what = f"{path}:{key.name}", _text(wrong)
        kind = ComplaintKind.STARTING if all(_begins(each, now) for each in wrong) else ComplaintKind.TARGET
        yield Complaint(kind, where, what, _describe(path, "synctarget", key.name))


def _placement(path: str, key: Key, obj: Object, now: float) -> Iterator[Complaint]:
    told = conditions_of(obj)
    wrong = [each for name in _OF_PLACEMENTS if (each := conditions.get(told, name)) is not None and _is_wrong(each)]
    if wrong:
        where, what = f"{path}:{key.name}", _text(wrong[:1])
        kind = ComplaintKind.STARTING if _begins(wrong[0], now) else ComplaintKind.PLACEMENT
        yield Complaint(kind, where, what, _describe(path, "placement", key.name))


def _is_wrong(told: Object) -> bool:
    return told.get("status") == "False"


def _begins(told: Condition, now: float) -> bool:
    """Whether it says so since a moment, and of a sync target that was not asked yet."""
    if conditions.NOT_ASKED not in str(told.get("message")):
        return False
    try:
        return abs(now - clock.parse(str(told.get("lastTransitionTime"))).timestamp()) < _PATIENCE
    except ValueError:
        return False


def _text(wrong: list[Object]) -> str:
    return cut("; ".join(f"{each.get('reason', '')}: {each.get('message', '')}" for each in wrong))


def _describe(path: str, kind: str, name: str) -> str:
    return f"{said('kubectl', 'ws', path)} && {said('kubectl', 'describe', kind, name)}"
