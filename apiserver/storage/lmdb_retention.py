"""How far back the log of an LMDB store reaches, and how it is cut: part of the writer's transactions.

Kept is what the slowest checkpoint needs, and what is younger than `log_seconds`, up to `log_bytes`; whoever is further
behind than that is told so (Compacted) and looks at everything. An entry has no time: every now and then a transaction
notes which revision it found at which time, in the table of the store's state:

    tick · seconds since 1970 (8 bytes)   → the revision then (8)
"""

from __future__ import annotations

import time
from typing import Final

from apiserver.model.tables import Table
from apiserver.storage import lmdb_layout as layout
from apiserver.storage import lmdb_rows as rows
from apiserver.storage.lmdb_environment import LmdbEnvironment, State, StoreSettings
from apiserver.storage.lmdb_library import Transaction
from apiserver.storage.lmdb_templates import References
from apiserver.storage.protocol import checkpoint_of

_AT_ONCE: Final = 2_000
"""Entries that one transaction removes."""
_TICKS: Final = 60
"""Notes of the time in `log_seconds`, about."""
_LOOK_SECONDS: Final = 1.0
_TICK: Final = b"tick"


class Retention:
    """Of one process. For the writer's thread alone."""

    def __init__(self, env: LmdbEnvironment, settings: StoreSettings) -> None:
        self._env, self._settings = env, settings
        self._until = self._done = 0
        """What may be forgotten as of the last look, and what is."""
        self._look = self._tick = 0.0
        """When to look again, and when to note the time."""

    def cut(self, txn: Transaction, references: References, before: State, state: State) -> State:
        """Forget a bounded number of entries if there are some to forget. `before`: as the transaction found it;
        `references`: told of the records that go."""
        now = time.monotonic()
        if now >= self._look:
            self._look = now + min(_LOOK_SECONDS, self._settings.log_seconds / _TICKS)
            self._until = self._horizon(txn, before, now)
        if state.size > self._settings.log_bytes:
            return self._forget(txn, references, state, state.revision, size=state.size - self._settings.log_bytes)[0]
        until = max(self._until, state.oldest)  # what `oldest` has passed nobody can read any more
        if not state.entries or until <= self._done:
            return state
        state, all_of_it = self._forget(txn, references, state, until)
        if all_of_it:
            self._done = until
        return state

    def keep(self, txn: Transaction, references: References, state: State, entries: int) -> tuple[State, bool]:
        """Forget the oldest entries so that so many stay; whether there is nothing left to forget."""
        excess = min(state.entries - max(0, entries), _AT_ONCE)
        if excess <= 0:
            return state, True
        return self._forget(txn, references, state, state.revision, most=excess)[0], False

    def _horizon(self, txn: Transaction, before: State, now: float) -> int:
        """The revision up to which neither a checkpoint nor the time needs the log."""
        found = rows.scan(self._env, txn, Table.CHECKPOINTS, "", None, None)
        return min([self._passed(txn, before, now), *(checkpoint_of(row.value) for row in found)])

    def _passed(self, txn: Transaction, before: State, now: float) -> int:
        """The revision that `log_seconds` ago was the last one."""
        seconds = self._settings.log_seconds
        if seconds <= 0:
            return before.revision
        at, table = time.time(), self._env.state_table
        if now >= self._tick:
            self._tick = now + seconds / _TICKS
            txn.put(_TICK + layout.U64.pack(int(at * 1000)), layout.U64.pack(before.revision), db=table)
        until = 0
        with txn.cursor(db=table) as cursor:
            there = cursor.set_range(_TICK)
            while there and cursor.key() < _TICK + layout.U64.pack(max(0, int((at - seconds) * 1000))):
                until = layout.revision_of(cursor.value())
                there = cursor.delete() and cursor.key().startswith(_TICK)
        return max(until, self._until)

    def _forget(
        self,
        txn: Transaction,
        references: References,
        state: State,
        until: int,
        *,
        most: int = _AT_ONCE,
        size: int | None = None,
    ) -> tuple[State, bool]:
        """Remove the oldest entries up to a revision, at most so many, or fewer if that makes `size` bytes; whether
        those up to the revision are gone."""
        cursor = txn.cursor(db=self._env.log)
        there = cursor.first()
        freed = count = 0
        oldest = state.oldest
        while there and count < most and (size is None or freed < size):
            number, raw = cursor.item()
            if layout.revision_of(number) > until:
                break
            oldest = max(oldest, layout.revision_of(number))
            freed += len(raw)
            count += 1
            previous = layout.decode_entry(raw)[2]
            if previous is not None:
                txn.delete(previous[:8], db=self._env.next)
                references.release(previous)
            there = cursor.delete() and cursor.key() != b""
        state = state._replace(entries=state.entries - count, size=state.size - freed, oldest=oldest)
        return state, count < most
