"""The embedded store: one LMDB file, shared by all processes of a machine. The door; `open_store` is the way in.

Reads are here: each is one LMDB read transaction that ends before the call returns. Writes are lmdb_writer.py's, old
states and the log lmdb_history.py's, bytes lmdb_layout.py's, files lmdb_environment.py's.

A process opens a directory once; several processes may open the same. Everything in it can be rebuilt.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from itertools import islice
from pathlib import Path

import lmdb

from apiserver.model.keys import Key
from apiserver.storage import lmdb_history as history
from apiserver.storage import lmdb_layout as layout
from apiserver.storage.doorbell import Doorbell
from apiserver.storage.lmdb_environment import LmdbEnvironment, State, StoreSettings
from apiserver.storage.lmdb_writer import Writer
from apiserver.storage.protocol import Change, Compacted, Op, Page, Record, Store

_REMEMBERED_PAGES = 256

_tuple = tuple.__new__
_number = int.from_bytes


def open_store(
    directory: Path,
    *,
    marked: frozenset[str] = frozenset(),
    sync: bool = True,
    start: int | None = None,
    settings: StoreSettings | None = None,
) -> Store:
    """Open or create the store in `directory` (made with mode 0700).

    `marked`: the resources whose last change `Store.marked()` tells; those that other processes named count too.
    `sync` False: an answered write may be lost if the machine (not only the process) fails. `start`: the revision is at
    least this. Raises UnknownFormat, OSError, and lmdb.Error if this process has the directory open already.
    """
    return LmdbStore(directory, marked, sync, start, settings or StoreSettings())


class LmdbStore:
    """See protocol.Store."""

    def __init__(
        self, directory: Path, marked: frozenset[str], sync: bool, start: int | None, settings: StoreSettings
    ) -> None:
        self._env = LmdbEnvironment(directory, marked, sync, start, settings)
        self._bell = Doorbell(directory, self._env.last_transaction, settings.look_seconds)
        self._writer = Writer(self._env, self._bell, settings)
        # What was behind a page, so that the pages of one list count that once: (snapshot, first, end) → objects.
        self._remaining: dict[tuple[int, bytes, bytes], int] = {}
        self._closed = False

    def revision(self) -> int:
        with self._env.read() as txn:
            return self._env.state(txn).revision

    def oldest(self) -> int:
        with self._env.read() as txn:
            return self._env.state(txn).oldest

    def marked(self) -> int:
        with self._env.read() as txn:
            return self._env.state(txn).marked

    def get(self, key: Key) -> Record | None:
        with self._env.read() as txn:
            return self._get(txn, key)

    def get_many(self, keys: Sequence[Key]) -> list[Record | None]:
        with self._env.read() as txn:
            return [self._get(txn, key) for key in keys]

    def _get(self, txn: lmdb.Transaction[bytes], key: Key) -> Record | None:
        resource = self._env.resource_id(txn, key.resource)
        if resource is None:
            return None
        try:
            tail = layout.tail(key)
        except ValueError:
            return None  # what cannot be stored is not there
        raw = txn.get(layout.short(resource + tail))
        return None if raw is None else layout.record(key, raw)

    def scan(
        self,
        resource: str,
        cluster: str | None = None,
        namespace: str | None = None,
        *,
        after: Key | None = None,
        limit: int | None = None,
        at: int | None = None,
        count: bool = True,
    ) -> Page:
        with self._env.read() as txn:
            state = self._env.state(txn)
            snapshot = _snapshot(state, at)
            number = self._env.resource_id(txn, resource)
            if number is None:
                return Page([], snapshot, None, 0)
            first, end = layout.prefix(number, cluster, namespace)
            if after is not None:
                first = max(first, _behind(number, after))
            changed = {} if snapshot == state.revision else history.before(self._env, txn, first, end, snapshot)
            read = _reader(resource, number, cluster, namespace)
            rows, behind_it = _rows(txn, first, end, changed, sys.maxsize - 1 if limit is None else limit)
            records = [read(stored, raw) for stored, raw in rows]
            if not behind_it:
                return Page(records, snapshot, None, 0)
            more = records[-1].key if records else after
            if not count:
                return Page(records, snapshot, more, 0)
            behind = first if more is None else _behind(number, more)
            remaining = self._remaining.get((snapshot, first, end), 0) - len(records)
            if remaining <= 0:
                remaining = history.count(txn, behind, end, changed)
            if len(self._remaining) >= _REMEMBERED_PAGES:
                self._remaining = {}
            self._remaining[snapshot, behind, end] = remaining
            return Page(records, snapshot, more, remaining)

    def resources(self) -> list[str]:
        with self._env.read() as txn:
            return self._env.resource_names(txn)

    def count(self, resource: str, cluster: str | None = None, namespace: str | None = None) -> int:
        with self._env.read() as txn:
            number = self._env.resource_id(txn, resource)
            if number is None:
                return 0
            return history.count(txn, *layout.prefix(number, cluster, namespace), {})

    def changes(self, after: int, limit: int = 10_000) -> list[Change]:
        with self._env.read() as txn:
            return history.changes(self._env, txn, after, limit)

    def write(self, *ops: Op, log: bool = True) -> Future[list[int]]:
        return self._writer.write(ops, log)

    def compact(self, keep: int) -> None:
        self._writer.compact(keep)

    def clear(self) -> None:
        self._writer.clear()

    def subscribe(self, ring: Callable[[], None]) -> Callable[[], None]:
        return self._bell.subscribe(ring)

    def close(self) -> None:
        """Answers what was written, then closes. Calling it again does nothing; anything else raises afterwards."""
        if not self._closed:
            self._closed = True
            self._writer.close()
            self._bell.close()
            self._env.close()


def _snapshot(state: State, at: int | None) -> int:
    """The revision to read at. Raises ValueError and Compacted as `Store.scan` says."""
    if at is None:
        return state.revision
    if at > state.revision:
        raise ValueError(f"revision {at} is in the future, the store is at {state.revision}")
    if at < state.oldest:
        raise Compacted(at, state.oldest)
    return at


def _rows(
    txn: lmdb.Transaction[bytes], first: bytes, end: bytes, changed: history.Before, limit: int
) -> tuple[list[history.Row], bool]:
    """At most `limit`, and whether there are more."""
    if not changed:
        return history.page(txn, first, end, limit)
    rows = history.rows(txn, first, end, changed)
    found = list(islice(rows, limit))
    return found, next(rows, None) is not None


def _behind(number: bytes, key: Key) -> bytes:
    """The first possible key behind this one, of the resource with this id."""
    return layout.short(number + layout.tail(key)) + b"\0"


def _reader(
    resource: str, number: bytes, cluster: str | None, namespace: str | None
) -> Callable[[bytes, bytes], Record]:
    """From a row to a Record, with what the rows of one scan have in common taken out of the loop."""
    skip = len(layout.prefix(number, cluster, namespace)[0])

    def full(stored: bytes, raw: bytes) -> Record:
        return layout.record(layout.split(layout.full_key(stored, raw), resource), raw)

    def in_workspace(stored: bytes, raw: bytes) -> Record:
        if raw[8:11] != layout.PLAIN:
            return full(stored, raw)
        space, _, name = stored[skip:].decode().partition("\0")
        key = _tuple(Key, (resource, cluster, space, name))
        return _tuple(Record, (key, _number(raw[:8], "big"), raw[layout.OBJECT_HEAD :], b""))

    def in_namespace(stored: bytes, raw: bytes) -> Record:
        if raw[8:11] != layout.PLAIN:
            return full(stored, raw)
        key = _tuple(Key, (resource, cluster, namespace, stored[skip:].decode()))
        return _tuple(Record, (key, _number(raw[:8], "big"), raw[layout.OBJECT_HEAD :], b""))

    if cluster is None:
        return full
    return in_workspace if namespace is None else in_namespace
