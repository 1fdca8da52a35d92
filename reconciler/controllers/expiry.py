"""Events end an hour after they were last written.

One controller for all workspaces of a store. Live Events stand in the order in which they end, which is the
order in which they were written: looking at the first one is enough, and no tick reads the store.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from apiserver.model import clock
from apiserver.model.keys import Key
from apiserver.storage.protocol import Delete, Store
from reconciler.controllers.controller import Controller
from reconciler.controllers.disposal import declared, write_all
from reconciler.controllers.feed import Entry

EVENTS = "events"

_TICK = Key("~tick", "", "", "")
_BATCH = 500

Object = dict[str, Any]


class EventExpiry(Controller[Key]):
    """`seconds`: how long an Event stays. `now`: seconds since 1970."""

    name = "expiry"
    resources = frozenset({EVENTS})

    def __init__(self, store: Store, seconds: float, now: Callable[[], float] = time.time) -> None:
        self._store = store
        self._seconds = seconds
        self._now = now
        self._ends: OrderedDict[Key, float] = OrderedDict()
        self._sorted = True
        self._lock = threading.Lock()

    def begin(self) -> None:
        with self._lock:
            self._ends.clear()

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        now = self._now()
        end = min(_written(entry.obj, now), now) + self._seconds if entry.shown else now + self._seconds
        with self._lock:
            self._ends.pop(entry.key, None)
            if entry.value is None:
                return
            self._ends[entry.key] = end
            self._sorted &= not entry.shown
            first = len(self._ends) == 1
        if entry.shown or first:
            yield _TICK

    def reconcile(self, key: Key) -> None:
        """Deletes what is due, at most a batch, and comes again when the next is."""
        due = self._due()
        records = [r for r in self._store.get_many(list(due)) if r is not None and not declared(self._store, r.value)]
        write_all(self._store, [Delete(r.key, r.revision) for r in records])
        with self._lock:
            for event, end in due.items():
                if self._ends.get(event) == end:
                    del self._ends[event]
            following = next(iter(self._ends.values()), None)
        if following is not None:
            self.queue.add_after(key, max(0.0, following - self._now()))

    def _due(self) -> dict[Key, float]:
        with self._lock:
            if not self._sorted:
                self._ends = OrderedDict(sorted(self._ends.items(), key=lambda item: item[1]))
                self._sorted = True
            now = self._now()
            return {event: end for event, end in islice(self._ends.items(), _BATCH) if end <= now}


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
