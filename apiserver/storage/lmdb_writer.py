"""The writer of an LMDB store: one thread per process that commits waiting calls together.

Started by the store (lmdb.py) at its first write. A call is checked before anything of it is applied, so a failed
precondition leaves no trace in the group's transaction; a call is answered after the commit, that is, once it is on
disk. The same transaction cuts the log at its old end (lmdb_retention.py).

Worked example, three calls in one LMDB transaction, the store at revision 100:

    write(Put(a), Put(b))              → [101, 102]
    write(Put(c), Check(a, 100))       → Conflict(a, 100, 101): c is not written, no revision taken
    write(Delete(a, expect=101))       → [103]
"""

from __future__ import annotations

import contextlib
import errno
import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import NamedTuple

from apiserver.model.keys import Key
from apiserver.model.tables import Table
from apiserver.storage import limits
from apiserver.storage import lmdb_indexes as indexes
from apiserver.storage import lmdb_layout as layout
from apiserver.storage import lmdb_rows as rows
from apiserver.storage.declared import Index
from apiserver.storage.doorbell import Doorbell
from apiserver.storage.lmdb_counts import Counted, counts
from apiserver.storage.lmdb_environment import LmdbEnvironment, State, StoreSettings
from apiserver.storage.lmdb_library import Full, LibraryError, Transaction
from apiserver.storage.lmdb_retention import Retention
from apiserver.storage.lmdb_templates import References
from apiserver.storage.protocol import (
    ABSENT,
    NEVER,
    Check,
    CheckNumber,
    CheckRow,
    Conflict,
    Delete,
    NoSpace,
    Op,
    Put,
    PutRow,
    RoleLost,
    RowConflict,
    RowOp,
    TooMany,
)
from apiserver.storage.templates import Filled

log = logging.getLogger(__name__)

_FULL = (errno.ENOSPC, errno.EDQUOT)
_READER_CHECK_SECONDS = 30.0


class Under(NamedTuple):
    """What a write of who has a role is done under: see protocol.Store.under. `full`: the row's key."""

    role: str
    full: bytes
    expected: bytes | None
    lost: Callable[[], None]

    @staticmethod
    def of(role: CheckRow, lost: Callable[[], None]) -> Under:
        expected = None if role.expect is ABSENT else role.expect
        return Under(role.row, rows.encoded(role.table, role.row), expected, lost)

    def check(self, env: LmdbEnvironment, txn: Transaction) -> None:
        """Raises RoleLost."""
        if rows.get(env, txn, self.full) != self.expected:
            raise RoleLost(self.role)


class _Call(NamedTuple):
    ops: Sequence[Op]
    logged: bool
    under: Under | None
    answer: Future[list[int]]


class _Compact(NamedTuple):
    keep: int
    under: Under | None
    answer: Future[list[int]]


class _Clear(NamedTuple):
    under: Under | None
    answer: Future[list[int]]


class _Effect(NamedTuple):
    """What an op does once its call is known to pass. `put` None: deletion; `whole`: the record, b"" where nothing but
    `put.like` says it; `marked`: of a marked resource."""

    key: Key
    full: bytes
    previous: bytes | None
    put: Put | None
    whole: bytes
    revision: int
    marked: bool

    @property
    def like(self) -> Filled | None:
        """See Put."""
        return self.put.like if self.put is not None and not self.put.stamp else None

    @property
    def record(self) -> bytes | None:
        """What stands there then, None for nothing."""
        return self.encoded(self.put) if self.put is not None else None

    def encoded(self, put: Put) -> bytes:
        """As it is stored without a template. Only to be asked for where it is needed: it may have to be made."""
        return self.whole or layout.encode_object(self.revision, put.stamp, put.value)

    def concerns(self, index: Index, forms: indexes.ByForm) -> bool:
        """Whether what an index looks for may stand in what was there or in what comes."""
        if self.previous is not None and index.hint in self.previous:
            return True
        put = self.put
        return put is not None and put.may_say(index.hint) and forms.has_terms(index, self.key, put)


class WriterThread:
    """Methods are safe from every thread. `close` answers what is waiting first."""

    def __init__(self, environment: LmdbEnvironment, bell: Doorbell, settings: StoreSettings) -> None:
        self._env, self._bell, self._settings = environment, bell, settings
        self._queue: queue.SimpleQueue[_Call | _Compact | _Clear | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False
        self.retention = Retention(environment, settings)
        self._forms = indexes.ByForm()
        self._checked_readers = time.monotonic()

    def write(self, ops: Sequence[Op], *, logged: bool, under: Under | None) -> Future[list[int]]:
        answer: Future[list[int]] = Future()
        self._submit(_Call(ops, logged, under, answer))
        return answer

    def compact(self, keep: int, under: Under | None) -> None:
        answer: Future[list[int]] = Future()
        self._submit(_Compact(keep, under, answer))
        answer.result()

    def clear(self, under: Under | None) -> None:
        answer: Future[list[int]] = Future()
        self._submit(_Clear(under, answer))
        answer.result()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._queue.put(None)
        if self._thread is not None:
            self._thread.join()

    def _submit(self, item: _Call | _Compact | _Clear) -> None:
        with self._lock:
            if self._closed:
                raise RuntimeError("the store is closed")
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True, name="store-writer")
                self._thread.start()
            self._queue.put(item)

    def _run(self) -> None:
        item = self._queue.get()
        while item is not None:
            if isinstance(item, _Compact | _Clear):
                if isinstance(item, _Compact):
                    self._compact(item)
                else:
                    self._clear(item)
                item = self._queue.get()
            else:
                item = self._group(item)
            self._check_readers()

    # -- a group of calls in one transaction

    def _group(self, first: _Call) -> _Call | _Compact | _Clear | None:
        """Commit `first` and what waits behind it; returns the item that did not go in."""
        passed: list[tuple[Future[list[int]], list[int]]] = []
        failed: list[tuple[_Call, Exception]] = []
        taken: list[Future[list[int]]] = []
        item: _Call | _Compact | _Clear | None = first
        try:
            with self._env.write() as txn:
                group = _Group(self._env, txn, self._forms)
                until = time.perf_counter() + self._settings.group_seconds
                operations = 0
                while isinstance(item, _Call):
                    call, item = item, _none
                    if call.answer.set_running_or_notify_cancel():
                        taken.append(call.answer)
                        refused = group.take(call, passed)
                        if refused is not None:
                            failed.append((call, refused))
                        operations += len(call.ops)
                    if operations >= self._settings.group_operations or time.perf_counter() >= until:
                        break
                    try:
                        item = self._queue.get_nowait()
                    except queue.Empty:
                        break
                changed = group.finish(self.retention)
        except Exception as error:
            refused = _refusal(error, self._env)
            for answer in taken:
                answer.set_exception(refused)
        else:
            self._env.remember(group.interned)
            for answer, revisions in passed:
                answer.set_result(revisions)
            for call, refused in failed:
                _fail(call, refused)
            if changed:
                self._bell.committed()
        return self._queue.get() if item is _none else item

    def _compact(self, request: _Compact) -> None:
        try:
            while True:
                with self._env.write() as txn:
                    if request.under is not None:
                        request.under.check(self._env, txn)
                    state, done = self.retention.keep(txn, self._env.state(txn), request.keep)
                    if done:
                        break
                    self._env.put_state(txn, state)
        except Exception as error:
            _fail(request, error)
        else:
            request.answer.set_result([])

    def _clear(self, request: _Clear) -> None:
        try:
            with self._env.write() as txn:
                if request.under is not None:
                    request.under.check(self._env, txn)
                roles = rows.scan(self._env, txn, Table.ROLES, "", None, None)
                for table in self._env.contents():
                    txn.drop(table, delete=False)
                for row, token in roles:
                    rows.put(self._env, txn, rows.encoded(Table.ROLES, row), token)
                revision = self._env.state(txn).revision + 1
                self._env.put_state(txn, State(revision, revision, revision, 0, 0))
        except Exception as error:
            _fail(request, error)
        else:
            request.answer.set_result([])
            self._bell.committed()

    def _check_readers(self) -> None:
        """A process that was killed in a read would keep old pages from being used again."""
        now = time.monotonic()
        if now - self._checked_readers > _READER_CHECK_SECONDS:
            self._checked_readers = now
            with contextlib.suppress(LibraryError):
                self._env.lmdb.reader_check()


class _Group:
    """One LMDB write transaction: applies calls one by one, each wholly or not at all."""

    def __init__(self, environment: LmdbEnvironment, txn: Transaction, forms: indexes.ByForm) -> None:
        self._env, self._txn = environment, txn
        self._before = self._state = environment.state(txn)
        self._counted = Counted()
        self._references = References(environment, txn)
        self._forms = forms
        self.interned: dict[str, bytes] = {}

    def take(self, call: _Call, passed: list[tuple[Future[list[int]], list[int]]]) -> Exception | None:
        """Apply the call and add its answer to `passed`, or say why not: then nothing of it was applied."""
        try:
            if call.under is not None:
                call.under.check(self._env, self._txn)
            revisions, effects, changed = self._check(call.ops)
        except Exception as refused:  # Conflict; or a caller's mistake, which is to hurt no other call
            return refused
        self._apply(call, effects)
        for full, value in changed.items():
            if value is None:
                rows.delete(self._env, self._txn, full)
            else:
                rows.put(self._env, self._txn, full, value)
        passed.append((call.answer, revisions))
        return None

    def _apply(self, call: _Call, effects: list[_Effect]) -> None:
        state, put, size, last_marked = self._state, self._txn.put, 0, self._state.marked
        for effect in effects:
            key, full, previous, _, _, revision, marked = effect
            for index in self._env.indexes.of(key.resource):
                if effect.concerns(index, self._forms):
                    indexes.change(self._env, self._txn, index, indexes.Changed(key, previous, effect.record))
            if marked:
                last_marked = revision
                self._counted.mark(full, revision)
            self._references.release(full)
            if effect.put is None:
                self._txn.delete(full, db=self._env.objects)
                self._counted.number(full, -1)
            else:
                like = effect.like
                short = self._references.take(full, revision, like) if like is not None else None
                put(full, short or effect.encoded(effect.put), db=self._env.objects)
                if previous is None:
                    self._counted.number(full, 1)
            if call.logged:
                number = layout.U64.pack(revision)
                entry = layout.encode_entry(full, effect.put is None, previous)
                size += len(entry)
                put(number, entry, append=True, db=self._env.log)
                if previous is not None:
                    put(previous[:8], number, db=self._env.next)
        if effects:
            end = effects[-1].revision
            self._state = State(
                end,
                state.oldest if call.logged else end,
                last_marked,
                state.entries + (len(effects) if call.logged else 0),
                state.size + size,
            )

    def _check(self, ops: Sequence[Op]) -> tuple[list[int], list[_Effect], dict[bytes, bytes | None]]:
        """The revision of each op, what to do, and the rows that are other ones then (None: gone)."""
        revision = self._state.revision
        revisions: list[int] = []
        effects: list[_Effect] = []
        own: dict[bytes, _Effect] = {}
        changed: dict[bytes, bytes | None] = {}
        checks: list[CheckNumber] = []
        for op in ops:
            if isinstance(op, CheckNumber):
                checks.append(op)
                revisions.append(0)
                continue
            if isinstance(op, RowOp):
                self._check_row(op, changed)
                revisions.append(0)
                continue
            key = op.key
            full = self._env.intern(self._txn, key.resource, self.interned) + limits.tail(key)
            limits.check_length(key, len(full))
            previous = own[full].record if full in own else self._references.read(key, full)
            if op.expect is not None:
                _expect(key, op.expect, previous)
            if isinstance(op, Check) or (isinstance(op, Delete) and previous is None):
                revisions.append(0)
                continue
            revision += 1
            put, whole = (op, self._record(op, revision)) if isinstance(op, Put) else (None, b"")
            effect = own[full] = _Effect(key, full, previous, put, whole, revision, key.resource in self._env.marked)
            effects.append(effect)
            revisions.append(revision)
        for check in checks:
            self._check_number(check, effects)
        return revisions, effects, changed

    def _check_number(self, check: CheckNumber, effects: list[_Effect]) -> None:
        """Of a call with all that it does."""
        number = self._counted.total(self._env, self._txn, check.cluster, check.besides)
        ours = (e for e in effects if e.key.cluster == check.cluster and counts(e.key.resource, check.besides))
        more = sum((e.previous is None) - (e.put is None) for e in ours)
        if more > 0 and number + more > check.most:
            raise TooMany(check.cluster, number, check.most)

    def _check_row(self, op: RowOp, changed: dict[bytes, bytes | None]) -> None:
        full = rows.encoded(op.table, op.row)
        if op.expect is not None:
            found = changed[full] if full in changed else rows.get(self._env, self._txn, full)
            if found != (None if op.expect is ABSENT else op.expect):
                raise RowConflict(op.table, op.row)
        if not isinstance(op, CheckRow):
            changed[full] = op.value if isinstance(op, PutRow) else None

    @staticmethod
    def _record(op: Put, revision: int) -> bytes:
        """See _Effect.whole."""
        limits.check_stamp(op.key, op.stamp)
        return layout.encode_object(revision, op.stamp, op.whole) if op.whole or op.like is None else b""

    def finish(self, retention: Retention) -> bool:
        """Cut the log and write the state row. False: no object was changed."""
        if self._state == self._before:
            return False
        self._counted.write(self._env, self._txn)
        self._references.write()
        self._env.put_state(self._txn, retention.cut(self._txn, self._before, self._state))
        return True


def _fail(item: _Call | _Compact | _Clear, error: Exception) -> None:
    item.answer.set_exception(error)
    if item.under is not None and isinstance(error, RoleLost):
        item.under.lost()


def _refusal(error: Exception, env: LmdbEnvironment) -> Exception:
    """What the callers of a transaction that failed are told."""
    if isinstance(error, Full) or getattr(error, "code", None) in _FULL:
        log.error("%s: nothing can be written, there is no room: %s", env.directory, error)
        return NoSpace(f"{env.directory} is full")
    log.exception("the store could not be written", exc_info=error)
    return error


def _expect(key: Key, expected: int, previous: bytes | None) -> None:
    found = NEVER if previous is None else layout.revision_of(previous)
    if found != expected:
        raise Conflict(key, expected, found)


_none = _Compact(0, None, Future())
"""Stands for: nothing was taken from the queue."""
