"""What an LMDB store is asked: each question is answered from one read transaction.

`LmdbStore` (lmdb.py) is a Reader that opens a transaction for each question, its view one that has all of them answered
by the same. Old states and the log are lmdb_history.py's, rows lmdb_rows.py's, bytes
lmdb_layout.py's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import islice, takewhile

from apiserver.model.keys import Key
from apiserver.model.tables import Table
from apiserver.storage import limits
from apiserver.storage import lmdb_counts as counts
from apiserver.storage import lmdb_history as history
from apiserver.storage import lmdb_indexes as indexes
from apiserver.storage import lmdb_layout as layout
from apiserver.storage import lmdb_rows as rows
from apiserver.storage import lmdb_templates as templates
from apiserver.storage.declared import Index, IndexEntry, begin_of, entry, row_of
from apiserver.storage.lmdb_environment import LmdbEnvironment, State
from apiserver.storage.lmdb_library import Transaction
from apiserver.storage.protocol import Change, Compacted, Page, Record, Row, Swept

_tuple = tuple.__new__
_number = int.from_bytes

Reading = Callable[[], AbstractContextManager[Transaction]]


class Reader:
    """See protocol.View."""

    def __init__(self, env: LmdbEnvironment, read: Reading) -> None:
        """`read`: the transaction that answers a question, until the end of the block."""
        self._env = env
        self._read = read

    def revision(self) -> int:
        with self._read() as txn:
            return self._env.state(txn).revision

    def oldest(self) -> int:
        with self._read() as txn:
            return self._env.state(txn).oldest

    def marked(self, cluster: str | None = None) -> int:
        with self._read() as txn:
            return self._env.state(txn).marked if cluster is None else counts.marked_of(self._env, txn, cluster)

    def get(self, key: Key) -> Record | None:
        with self._read() as txn:
            return self._get(txn, key)

    def get_many(self, keys: Sequence[Key]) -> list[Record | None]:
        with self._read() as txn:
            return [self._get(txn, key) for key in keys]

    def _get(self, txn: Transaction, key: Key) -> Record | None:
        resource = self._env.resource_id(txn, key.resource)
        if resource is None:
            return None
        try:
            tail = limits.tail(key)
        except ValueError:
            return None  # what cannot be stored is not there
        raw = txn.get(resource + tail)
        return None if raw is None else templates.record(self._env, txn, key, raw)

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
        with self._read() as txn:
            state = self._env.state(txn)
            snapshot = _snapshot(state, at)
            number = self._env.resource_id(txn, resource)
            if number is None:
                return Page([], snapshot, None, 0)
            first, end = layout.prefix(number, cluster, namespace)
            if after is not None:
                first = max(first, _behind(number, after))
            changed = {} if snapshot == state.revision else history.before(self._env, txn, first, end, snapshot)
            read = self._reader(txn, resource, number, cluster, namespace)
            found, behind_it = _page(txn, first, end, changed, sys.maxsize - 1 if limit is None else limit)
            records = [read(stored, raw) for stored, raw in found]
            if not behind_it:
                return Page(records, snapshot, None, 0)
            more = records[-1].key if records else after
            if not count:
                return Page(records, snapshot, more, 0)
            if namespace is None and after is None:
                whole = self._counted(txn, number, cluster) + history.fewer(txn, changed)
                return Page(records, snapshot, more, whole - len(records))
            behind = first if more is None else _behind(number, more)
            return Page(records, snapshot, more, history.count(txn, behind, end, changed))

    def get_row(self, table: Table, row: str) -> bytes | None:
        with self._read() as txn:
            return self._row(txn, table, row)

    def get_rows(self, table: Table, rows: Sequence[str]) -> list[bytes | None]:
        with self._read() as txn:
            return [self._row(txn, table, each) for each in rows]

    def _row(self, txn: Transaction, table: Table, row: str) -> bytes | None:
        try:
            return rows.get(self._env, txn, rows.encoded(table, row))
        except ValueError:
            return None  # what cannot be stored is not there

    def scan_rows(
        self, table: Table, prefix: str = "", *, after: str | None = None, limit: int | None = None
    ) -> list[Row]:
        with self._read() as txn:
            return rows.scan(self._env, txn, table, prefix, after, limit)

    def indexed(
        self,
        index: Index,
        begin: str = "",
        *,
        whole: bool = False,
        after: IndexEntry | None = None,
        limit: int | None = None,
    ) -> list[IndexEntry]:
        table = self._env.indexes.table(index)
        behind = row_of(after) if after is not None else None
        with self._read() as txn:
            found = rows.scan(self._env, txn, table, begin_of(begin, whole), behind, limit)
        return [entry(row.key) for row in found]

    def tally(self, index: Index, term: str) -> int:
        table = self._env.indexes.tallies(index)
        with self._read() as txn:
            return indexes.tally(self._env, txn, table, term)

    def _reader(
        self, txn: Transaction, resource: str, number: bytes, cluster: str | None, namespace: str | None
    ) -> Callable[[bytes, bytes], Record]:
        """From a row to a Record, with what the rows of one scan have in common taken out of the loop."""
        env, skip = self._env, len(layout.prefix(number, cluster, namespace)[0])

        def full(stored: bytes, raw: bytes) -> Record:
            return templates.record(env, txn, layout.split(stored, resource), raw)

        def in_workspace(stored: bytes, raw: bytes) -> Record:
            if raw[layout.STAMPED]:
                return full(stored, raw)
            space, _, name = stored[skip:].decode().partition("\0")
            key = _tuple(Key, (resource, cluster, space, name))
            return _tuple(Record, (key, _number(raw[:8], "big"), raw[layout.OBJECT_HEAD :], b""))

        def in_namespace(stored: bytes, raw: bytes) -> Record:
            if raw[layout.STAMPED]:
                return full(stored, raw)
            key = _tuple(Key, (resource, cluster, namespace, stored[skip:].decode()))
            return _tuple(Record, (key, _number(raw[:8], "big"), raw[layout.OBJECT_HEAD :], b""))

        if cluster is None:
            return full
        return in_workspace if namespace is None else in_namespace

    def resources(self, cluster: str | None = None) -> list[str]:
        with self._read() as txn:
            if cluster is None:
                return self._env.resource_names(txn)
            numbers = counts.of_cluster(self._env, txn, cluster)
            return sorted(self._env.resource_name(txn, number) for number in numbers)

    def keys(self, cluster: str) -> list[Key]:
        with self._read() as txn:
            numbers = counts.of_cluster(self._env, txn, cluster)
            resources = sorted((self._env.resource_name(txn, number), number) for number in numbers)
            found: list[Key] = []
            with txn.cursor() as cursor:
                for resource, number in resources:
                    first, end = layout.prefix(number, cluster, None)
                    if cursor.set_range(first):
                        there = takewhile(end.__gt__, cursor.iternext(keys=True, values=False))
                        found += (layout.split(stored, resource) for stored in there)
            return found

    def count(self, resource: str, cluster: str | None = None, namespace: str | None = None) -> int:
        with self._read() as txn:
            number = self._env.resource_id(txn, resource)
            if number is None:
                return 0
            if namespace is None:
                return self._counted(txn, number, cluster)
            return history.count(txn, *layout.prefix(number, cluster, namespace), {})

    def number(self, cluster: str, besides: frozenset[str] = frozenset()) -> int:
        with self._read() as txn:
            return counts.number_of(self._env, txn, cluster, besides)

    def _counted(self, txn: Transaction, resource: bytes, cluster: str | None) -> int:
        """How many objects of a resource there are, in one workspace or in all."""
        if cluster is None:
            return counts.of_resource(self._env, txn, resource)
        return counts.of_cluster(self._env, txn, cluster).get(resource, 0)

    def changes(self, after: int, limit: int = 10_000, swept: Swept | None = None) -> list[Change]:
        with self._read() as txn:
            return history.changes(self._env, txn, after, limit, swept)


def _snapshot(state: State, at: int | None) -> int:
    """The revision to read at. Raises ValueError and Compacted as `Store.scan` says."""
    if at is None:
        return state.revision
    if at > state.revision:
        raise ValueError(f"revision {at} is in the future, the store is at {state.revision}")
    if at < state.oldest:
        raise Compacted(at, state.oldest)
    return at


def _page(
    txn: Transaction, first: bytes, end: bytes, changed: history.Before, limit: int
) -> tuple[list[history.Row], bool]:
    """At most `limit`, and whether there are more."""
    if not changed:
        return history.page(txn, first, end, limit)
    there = history.rows(txn, first, end, changed)
    found = list(islice(there, limit))
    return found, next(there, None) is not None


def _behind(number: bytes, key: Key) -> bytes:
    """The first possible key behind this one, of the resource with this id."""
    return number + limits.tail(key) + b"\0"
