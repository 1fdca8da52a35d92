"""What the store says of the fleet: what is served, held and on its way, and how sync targets are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import orjson

from apiserver.metrics import clusters, fleet
from apiserver.metrics.definition import Labels, Metric
from apiserver.model import conditions
from apiserver.model.storagenames import SYNC_TARGETS
from apiserver.registry import announced, indexes, lags, looks, tree
from apiserver.storage.paging import pages
from apiserver.storage.protocol import View

_Sample = tuple[Metric, Labels, float]
_TROUBLES = (
    "Held",
    "NotRecorded",
    "Observing",
    "RemoteAway",
    "StatusBranchDiverged",
    "StatusBranchRefused",
    "Unreadable",
)
"""Told as 0 where there is none, so that an alert has something to end with."""
_READY = {"True": "true", "False": "false"}


def read(view: View) -> Iterator[_Sample]:
    record, troubles = tree.fleet(view), tree.troubles(view)
    yield fleet.LOADED, (), float(record.loaded)
    for kind in sorted({*_TROUBLES, *troubles}):
        yield fleet.TROUBLES, (kind,), float(kind in troubles)
    yield fleet.WORKSPACES, (), float(tree.count(view))
    yield fleet.HELD, (), float(tree.count_held(view))
    yield fleet.LAG, (), float(max(lags.counted(view).values(), default=0))
    waiting, away = looks.waiting(view), looks.away(view)
    # Of a commit that is held as a whole, or cannot be read, that is told.
    waits = waiting is not None and waiting.head != record.commit.id and not {"Held", "Unreadable"} & troubles.keys()
    yield fleet.WAITING_SINCE, (), waiting.since if waiting is not None and waits else 0.0
    yield fleet.AWAY_SINCE, (), away.since if away is not None else 0.0
    yield fleet.SOURCES_FAILING, (), float(view.tally(indexes.AMISS, indexes.SOURCE_AMISS))
    yield fleet.LOCKED, (), float(view.tally(indexes.LOCKING, indexes.LOCKED))
    for who, text in announced.failing(view).items():
        yield fleet.ANNOUNCING, (who,), float(bool(text))
    yield clusters.PLACEMENTS_AMISS, (), float(view.tally(indexes.AMISS, indexes.PLACEMENT_AMISS))
    yield from _targets(view)


def _targets(view: View) -> Iterator[_Sample]:
    found: Counter[str] = Counter({"true": 0, "false": 0, "unknown": 0})
    for page in pages(view, SYNC_TARGETS):
        for record in page:
            status = orjson.loads(record.value).get("status")
            told = status.get("conditions") if isinstance(status, dict) else None
            ready = conditions.get(told, "Ready") if isinstance(told, list) else None
            found[_READY.get(str((ready or {}).get("status")), "unknown")] += 1
    for ready_is, number in found.items():
        yield clusters.TARGETS, (ready_is,), float(number)
