"""When controllers are to look again: an index by time, a row for each appointment.

Kept by a manager for those of its controllers that have a checkpoint. Memory holds only what is due soon; a restart
finds the rest. Rows of a key that fall into one minute are one, so that a key which is given the same appointment again
and again, or one that moves a little each time, makes no heap of them.

    <controller>, <minute since 1970>, <the key's parts>   → when, in milliseconds since 1970
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import Any, NamedTuple

from apiserver.model.keys import Key
from apiserver.model.tables import Table, row_key
from apiserver.storage.protocol import DeleteRow, PutRow, Store

_MINUTE = 60
_DIGITS = 10
AT_START = 0.0
"""The time of what is looked at again when a process begins, and before that if there is a reason."""
_PAGE = 1000


class Appointment(NamedTuple):
    """`at`: seconds since 1970. `row`: the row's key."""

    key: Any
    at: float
    row: str


class Appointments:
    """Of one controller. Its keys are Keys or text."""

    def __init__(self, store: Store, controller: str) -> None:
        self._store, self._controller = store, controller
        self._read = ""
        """The first minute that was not read yet."""

    def put(self, key: Any, at: float) -> tuple[Appointment, Future[list[int]] | None]:
        """And its write, if there is one. Of several within a minute the earliest stands."""
        row = row_key(self._controller, _minute(at), *(key if isinstance(key, Key) else (key,)))
        before = self._store.get_row(Table.APPOINTMENTS, row)
        if before is not None and _time(before) <= at:
            return Appointment(key, _time(before), row), None
        written = self._store.write(PutRow(Table.APPOINTMENTS, row, b"%d" % round(at * 1000)))
        return Appointment(key, at, row), written

    def were_read(self, at: float) -> bool:
        """Whether `until` gave already what is due then."""
        return _minute(at) < self._read

    def until(self, at: float) -> Iterator[Appointment]:
        """Those of every minute that has begun by then, in the order of minutes; each once."""
        prefix, end = row_key(self._controller, ""), row_key(self._controller, _minute(at + _MINUTE))
        after = row_key(self._controller, self._read) if self._read else None
        while True:
            rows = self._store.scan_rows(Table.APPOINTMENTS, prefix, after=after, limit=_PAGE)
            for row in rows:
                if row.key < end:
                    yield Appointment(_key(row.key), _time(row.value), row.key)
            if len(rows) < _PAGE or rows[-1].key >= end:
                break
            after = rows[-1].key
        self._read = max(self._read, _minute(at + _MINUTE))

    def delete(self, rows: Iterable[str]) -> None:
        """They stand for nothing any more. Not waited for: one too many is one look too many."""
        self._store.write(*(DeleteRow(Table.APPOINTMENTS, row) for row in rows))


def _minute(at: float) -> str:
    return str(int(at) // _MINUTE).rjust(_DIGITS, "0")


def _time(value: bytes) -> float:
    return int(value) / 1000


def _key(row: str) -> Any:
    parts = row.split("\0")[2:]
    return Key(*parts) if len(parts) > 1 else parts[0]
