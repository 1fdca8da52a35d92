"""The writer of an LMDB store: one thread per process that commits waiting calls together.

Started by the store (lmdb.py) at its first write. A call is answered after the commit, that is, once it is on disk;
what it does to a transaction is lmdb_group's.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import queue
import shutil
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import NamedTuple

from apiserver.metrics.store import COMMITS, FAILURES
from apiserver.model.tables import Table
from apiserver.storage import lmdb_indexes as indexes
from apiserver.storage import lmdb_rows as rows
from apiserver.storage.baton import BATON, StoreAnswer
from apiserver.storage.doorbell import Doorbell
from apiserver.storage.lmdb_environment import LmdbEnvironment, State, StoreSettings
from apiserver.storage.lmdb_group import Group, Under
from apiserver.storage.lmdb_library import Full, LibraryError
from apiserver.storage.lmdb_retention import Retention
from apiserver.storage.lmdb_templates import References
from apiserver.storage.protocol import NoSpace, Op, RoleLost

log = logging.getLogger(__name__)

_FULL = (errno.ENOSPC, errno.EDQUOT)
_LITTLE = 4 << 20
"""Bytes that are no room: more than what one write may leave of them, when it was cut off."""
_READER_CHECK_SECONDS = 30.0


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


class WriterThread:
    """Methods are safe from every thread. `close` answers what is waiting first."""

    def __init__(self, environment: LmdbEnvironment, bell: Doorbell, settings: StoreSettings) -> None:
        self._env, self._bell, self._settings = environment, bell, settings
        self._queue: queue.SimpleQueue[_Call | _Compact | _Clear | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False
        self.retention = Retention(environment, settings)
        self._forms = indexes.ByForm(environment.indexes)
        self._checked_readers = time.monotonic()

    def write(self, ops: Sequence[Op], *, logged: bool, under: Under | None) -> Future[list[int]]:
        answer = StoreAnswer()
        self._submit(_Call(ops, logged, under, answer))
        return answer

    def compact(self, keep: int, under: Under | None) -> None:
        answer = StoreAnswer()
        self._submit(_Compact(keep, under, answer))
        answer.result()

    def clear(self, under: Under | None) -> None:
        answer = StoreAnswer()
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
        began = time.perf_counter()
        try:
            with self._env.write() as txn, BATON:
                group = Group(self._env, txn, self._forms)
                until = time.perf_counter() + self._settings.group_seconds
                operations = 0
                while isinstance(item, _Call):
                    call, item = item, _none
                    if call.answer.set_running_or_notify_cancel():
                        taken.append(call.answer)
                        done = group.take(call.ops, logged=call.logged, under=call.under)
                        if isinstance(done, Exception):
                            failed.append((call, done))
                        else:
                            passed.append((call.answer, done))
                        operations += len(call.ops)
                    if operations >= self._settings.group_operations or time.perf_counter() >= until:
                        break
                    try:
                        item = self._queue.get_nowait()
                    except queue.Empty:
                        break
                changed = group.finish(self.retention)
        except Exception as error:
            if item is first:  # the transaction did not even begin
                item, taken = _none, [first.answer] if first.answer.set_running_or_notify_cancel() else []
            self._refuse(taken, error)
        else:
            COMMITS.took(time.perf_counter() - began)
            self._env.remember(group.interned)
            for answer, revisions in passed:
                answer.set_result(revisions)
            for call, refused in failed:
                _fail(call, refused)
            if changed:
                self._bell.committed()
        return self._queue.get() if item is _none else item

    def _refuse(self, answers: list[Future[list[int]]], error: Exception) -> None:
        refused = _refusal(error, self._env)
        for answer in answers:
            answer.set_exception(refused)

    def _compact(self, request: _Compact) -> None:
        try:
            while True:
                with self._env.write() as txn:
                    if request.under is not None:
                        request.under.check(self._env, txn)
                    references = References(self._env, txn)
                    state, done = self.retention.keep(txn, references, self._env.state(txn), request.keep)
                    if done:
                        break
                    references.write()
                    self._env.put_state(txn, state)
        except Exception as error:
            _fail(request, _refusal(error, self._env))
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
            _fail(request, _refusal(error, self._env))
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


def _fail(item: _Call | _Compact | _Clear, error: Exception) -> None:
    item.answer.set_exception(error)
    if item.under is not None and isinstance(error, RoleLost):
        item.under.lost()


def _refusal(error: Exception, env: LmdbEnvironment) -> Exception:
    """What the callers of a transaction that failed are told, whichever kind it was."""
    if isinstance(error, RoleLost):
        return error
    FAILURES.add()
    if isinstance(error, Full) or _is_of_disk(getattr(error, "code", None), env.directory):
        log.error("%s: nothing can be written, there is no room: %s", env.directory, error)
        return NoSpace(f"{env.directory} is full")
    log.exception("the store could not be written", exc_info=error)
    return error


def _is_of_disk(code: int | None, directory: Path) -> bool:
    """Whether an error says that the disk is full. Of a write for whose first part alone there was room the library
    makes EIO, which it also is where the disk is broken."""
    if code == errno.EIO:
        return shutil.disk_usage(directory).free < _LITTLE
    return code in _FULL


_none = _Compact(0, None, Future())
"""Stands for: nothing was taken from the queue."""
