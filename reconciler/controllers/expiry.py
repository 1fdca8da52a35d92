"""Events end an hour after they were last written.

One controller for all workspaces of a store. When each was written last is an index, in the order of time, so it is
enough to look at its first entries now and then, and nothing is kept. That time is the server's word, but for a client
that writes an object's managedFields itself: what is dated into the future ends like what is written now.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from apiserver.model import clock
from apiserver.model.keys import Key
from apiserver.registry import indexes
from apiserver.storage.declared import IndexEntry, entries
from apiserver.storage.protocol import Delete, Record, Store
from reconciler.controllers.controller import Controller
from reconciler.controllers.disposal import declared, write_all
from reconciler.controllers.entry import Entry

EVENTS = "events"

_TICK = Key("~tick", "", "", "")
_LATE = "~late"
"""As the resource of a key: an Event that was dated into the future."""
_SKEW = 60.0
"""Seconds by which clocks may differ."""
_BATCH = 500
_TICK_SECONDS = 60.0
_AGAIN = 3600.0
"""Seconds after which Events that stay for the sake of a file are looked at again."""


class EventExpiry(Controller[Key]):
    """`seconds`: how long an Event stays. `now`: seconds since 1970."""

    name = "expiry"
    version = "1"
    resources = frozenset({EVENTS})

    def __init__(self, store: Store, seconds: float, now: Callable[[], float] = time.time) -> None:
        self._store = store
        self._seconds = seconds
        self._now = now
        self._kept: IndexEntry | None = None
        """All entries up to this one stay."""
        self._kept_since = 0.0

    def begin(self) -> None:
        self._kept = None
        self.queue.add(_TICK)

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        if entry.value is not None and _written(entry.key, entry.value) > self._now() + _SKEW:
            yield entry.key

    def reconcile(self, key: Key) -> None:
        if key == _TICK:
            self._tick()
        elif key.resource == EVENTS:
            self.queue.add_after(key._replace(resource=_LATE), self._seconds)
        else:
            record = self._store.get(key._replace(resource=EVENTS))
            if record is not None and _written(record.key, record.value) > self._now() + _SKEW:
                self._end([record])

    def _tick(self) -> None:
        """Deletes what is due, at most a batch, and comes again when the next is, or an Event may be that is written
        meanwhile."""
        now = self._now()
        if now - self._kept_since > _AGAIN:
            self._kept, self._kept_since = None, now
        found = self._store.indexed(indexes.WRITTEN, indexes.written(EVENTS, ""), after=self._kept, limit=_BATCH)
        due = [entry for entry in found if _time(entry.term) + self._seconds <= now]
        records = [record for record in self._store.get_many([entry.key for entry in due]) if record is not None]
        if due and not self._end(records):
            self._kept = due[-1]
        following = 0.0 if due else _time(found[0].term) + self._seconds - now if found else _TICK_SECONDS
        self.queue.add_after(_TICK, max(0.0, min(following, self._seconds, _TICK_SECONDS)))

    def _end(self, records: Iterable[Record]) -> int:
        """How many of them went, or are about to."""
        gone = [Delete(r.key, r.revision) for r in records if not declared(self._store, r.value)]
        write_all(self._store, list(gone))
        return len(gone)


def _written(key: Key, value: bytes) -> float:
    """When the index has it that an Event was written (seconds since 1970)."""
    return max((_time(row.partition("\0")[0]) for row in entries(indexes.WRITTEN, key, value)), default=0.0)


def _time(term: str) -> float:
    return clock.parse(term.rpartition("/")[2]).timestamp()
