"""Events end an hour after they were last written.

One part of a follower for all workspaces of a store. Live Events stand in the order in which they end, which is the
order in which they were written: looking at the first one is enough, and no tick reads the store.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import orjson

from apiserver.model import clock
from apiserver.model.keys import Key
from apiserver.storage.protocol import Change, Delete, Record, Store
from reconciler.controllers.disposal import declared, write_all
from reconciler.controllers.follower import Part

EVENTS = "events"

_TICK = Key("~tick", "", "", "")
_BATCH = 500

Object = dict[str, Any]


class EventExpiry(Part):
    """`seconds`: how long an Event stays. `now`: seconds since 1970."""

    def __init__(self, store: Store, seconds: float, now: Callable[[], float] = time.time) -> None:
        self._store = store
        self._seconds = seconds
        self._now = now
        self._ends: OrderedDict[Key, float] = OrderedDict()
        self._sorted = True

    def begin(self) -> None:
        self._ends.clear()

    def found(self, record: Record) -> None:
        if record.key.resource != EVENTS:
            return
        now = self._now()
        self._ends[record.key] = min(_written(orjson.loads(record.value), now), now) + self._seconds
        self._sorted = False
        self.desk.add(_TICK)

    def changed(self, change: Change) -> None:
        if change.key.resource != EVENTS:
            return
        self._ends.pop(change.key, None)
        if change.value is not None:
            self._ends[change.key] = self._now() + self._seconds
            if len(self._ends) == 1:
                self.desk.add(_TICK)

    def handle(self, key: Key) -> None:
        """Deletes what is due, at most a batch, and comes again when the next is."""
        if not self._sorted:
            self._ends = OrderedDict(sorted(self._ends.items(), key=lambda item: item[1]))
            self._sorted = True
        now = self._now()
        due: list[Key] = []
        for event, end in self._ends.items():
            if end > now or len(due) >= _BATCH:
                break
            due.append(event)
        records = [r for r in self._store.get_many(due) if r is not None and not declared(self._store, r.value)]
        write_all(self._store, [Delete(r.key, r.revision) for r in records])
        for event in due:
            del self._ends[event]
        if self._ends:
            self.desk.later(key, max(0.0, next(iter(self._ends.values())) - now))


def _written(event: Object, unknown: float) -> float:
    """When it was last written, by what it says itself (seconds since 1970)."""
    series = event.get("series") or {}
    metadata = event["metadata"]
    told = (
        series.get("lastObservedTime"),
        event.get("lastTimestamp"),
        event.get("deprecatedLastTimestamp"),
        event.get("eventTime"),
        metadata.get("creationTimestamp"),
    )
    times = []
    for text in told:
        try:
            times.append(clock.parse(str(text)).timestamp() if text else 0.0)
        except ValueError:
            continue
    return max(times, default=0.0) or unknown
