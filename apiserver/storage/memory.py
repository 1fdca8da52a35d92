"""A store in memory: the whole contract (protocol.py), with nothing behind it.

For tests, for the contract's own suite, which holds it against the others, and for the little that ships with the
server and is only read (endpoints/systemadmin.py); so it is written to be read, not to be quick. A `Memory` is what a
directory is to the embedded store: who opens it a second time finds what was there, and two who have it open are as two
processes. It keeps all of its log until it is told to forget.
"""

from __future__ import annotations

import logging
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from typing import NamedTuple

from apiserver.model.keys import Key
from apiserver.model.tables import Table
from apiserver.storage import alike, limits
from apiserver.storage.declared import Declared, Index, IndexEntry, Indexes, begin_of, entries, entry, row_of, table
from apiserver.storage.protocol import (
    ABSENT,
    NEVER,
    Change,
    Check,
    CheckNumber,
    CheckRow,
    Compacted,
    Conflict,
    Delete,
    DeleteAll,
    Op,
    Page,
    Put,
    PutAlike,
    PutRow,
    Record,
    RoleLost,
    Row,
    RowConflict,
    RowOp,
    Store,
    Swept,
    TooMany,
    View,
    check_apart,
)

log = logging.getLogger(__name__)

_NOTHING = Declared()


class _Logged(NamedTuple):
    """One entry of the log; None: there was, or is, no object."""

    revision: int
    key: Key
    before: Record | None
    after: Record | None
    swept: bool = False
    """By a DeleteAll."""

    def change(self) -> Change:
        value = self.after.value if self.after is not None else None
        previous, revision = (self.before.value, self.before.revision) if self.before is not None else (None, 0)
        known = self.after or self.before
        return Change(self.revision, self.key, value, previous, revision, known.stamp if known is not None else b"")


@dataclass(slots=True)
class _State:
    """All that there is. `rows` are those of tables and of indexes, by the table's name and their key; `order` the keys
    of the objects, sorted; `marks` when a workspace's marked objects changed last, `marked` when any did."""

    revision: int
    oldest: int
    objects: dict[Key, Record] = field(default_factory=dict)
    order: list[Key] = field(default_factory=list)
    rows: dict[tuple[str, str], bytes] = field(default_factory=dict)
    log: list[_Logged] = field(default_factory=list)
    resources: set[str] = field(default_factory=set)
    marks: dict[str, int] = field(default_factory=dict)
    marked: int = 0

    def copy(self) -> _State:
        """One that does not change with this one."""
        return replace(
            self,
            objects=dict(self.objects),
            order=[*self.order],
            rows=dict(self.rows),
            log=[*self.log],
            resources={*self.resources},
            marks=dict(self.marks),
        )

    def at(self, revision: int) -> _State:
        """As it was then, as far as the objects go."""
        if revision == self.revision:
            return self
        then = self.copy()
        for change in reversed(self.log):
            if change.revision <= revision:
                break
            then.put(change.key, change.before)
        return then

    def put(self, key: Key, record: Record | None) -> None:
        there = self.objects.pop(key, None)
        if record is not None:
            self.objects[key] = record
            if there is None:
                self.order.insert(bisect_left(self.order, key), key)
        elif there is not None:
            del self.order[bisect_left(self.order, key)]

    def number(self, cluster: str, besides: frozenset[str]) -> int:
        there = (key.resource for key in self.objects if key.cluster == cluster)
        return sum(not name.startswith("~") and name.partition(":")[0] not in besides for name in there)

    def among(self, resource: str, cluster: str | None, namespace: str | None) -> list[Key]:
        first = Key(resource, cluster or "", (namespace or "") if cluster is not None else "", "")
        where = (resource, *(part for part in (cluster, namespace) if part is not None))
        there = self.order[bisect_left(self.order, first) :]
        return list(takewhile(lambda key: key[: len(where)] == where, there))


class Memory:
    """What stores in memory are opened on."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.state = _State(0, 0)
        self.marked: frozenset[str] = frozenset()
        self.built: dict[str, int] = {}
        self.rings: tuple[Callable[[], None], ...] = ()


class MemoryReader:
    """See protocol.View. `state`: what answers, while `memory` is locked."""

    def __init__(self, memory: Memory, indexes: Indexes, state: Callable[[], _State]) -> None:
        self._memory, self._indexes, self._state = memory, indexes, state

    def revision(self) -> int:
        with self._memory.lock:
            return self._state().revision

    def oldest(self) -> int:
        with self._memory.lock:
            return self._state().oldest

    def marked(self, cluster: str | None = None) -> int:
        with self._memory.lock:
            state = self._state()
            return state.marked if cluster is None else state.marks.get(cluster, 0)

    def get(self, key: Key) -> Record | None:
        with self._memory.lock:
            return self._state().objects.get(key)

    def get_many(self, keys: Sequence[Key]) -> list[Record | None]:
        with self._memory.lock:
            return [self._state().objects.get(key) for key in keys]

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
        with self._memory.lock:
            now = self._state()
            revision = now.revision if at is None else at
            if revision > now.revision:
                raise ValueError(f"revision {at} is in the future, the store is at {now.revision}")
            if revision < now.oldest:
                raise Compacted(revision, now.oldest)
            then = now.at(revision)
            keys = then.among(resource, cluster, namespace)
            found = keys[bisect_right(keys, after) if after is not None else 0 :]
            page = found if limit is None else found[:limit]
            behind = len(found) - len(page)
            more = (page[-1] if page else after) if behind else None
            return Page([then.objects[key] for key in page], revision, more, behind if count else 0)

    def get_row(self, table: Table, row: str) -> bytes | None:
        with self._memory.lock:
            return self._state().rows.get((table, row))

    def get_rows(self, table: Table, rows: Sequence[str]) -> list[bytes | None]:
        with self._memory.lock:
            return [self._state().rows.get((table, row)) for row in rows]

    def scan_rows(
        self, table: Table, prefix: str = "", *, after: str | None = None, limit: int | None = None
    ) -> list[Row]:
        return self._rows(table, prefix, after, limit)

    def _rows(self, table: str, prefix: str, after: str | None, limit: int | None) -> list[Row]:
        with self._memory.lock:
            there = self._state().rows.items()
            found = [Row(row, v) for (of, row), v in there if of == table and row.startswith(prefix)]
        return sorted(row for row in found if after is None or row.key > after)[:limit]

    def indexed(
        self,
        index: Index,
        begin: str = "",
        *,
        whole: bool = False,
        after: IndexEntry | None = None,
        limit: int | None = None,
    ) -> list[IndexEntry]:
        behind = row_of(after) if after is not None else None
        return [entry(r.key) for r in self._rows(self._indexes.table(index), begin_of(begin, whole), behind, limit)]

    def tally(self, index: Index, term: str) -> int:
        self._indexes.tallies(index)
        return len(self.indexed(index, term, whole=True))

    def resources(self, cluster: str | None = None) -> list[str]:
        with self._memory.lock:
            state = self._state()
            if cluster is None:
                return sorted(state.resources)
            return sorted({key.resource for key in state.objects if key.cluster == cluster})

    def keys(self, cluster: str) -> list[Key]:
        with self._memory.lock:
            return sorted(key for key in self._state().objects if key.cluster == cluster)

    def count(self, resource: str, cluster: str | None = None, namespace: str | None = None) -> int:
        with self._memory.lock:
            return len(self._state().among(resource, cluster, namespace))

    def number(self, cluster: str, besides: frozenset[str] = frozenset()) -> int:
        with self._memory.lock:
            return self._state().number(cluster, besides)

    def changes(self, after: int, limit: int = 10_000, swept: Swept | None = None) -> list[Change]:
        with self._memory.lock:
            state = self._state()
            if after < state.oldest:
                raise Compacted(after, state.oldest)
            first = bisect_right([logged.revision for logged in state.log], after)
            asked = (e for e in islice(state.log, first, None) if not e.swept or swept is None or swept(e.key.resource))
            return [logged.change() for logged in islice(asked, max(0, limit))]


def _check_number(check: CheckNumber, before: _State, after: _State) -> None:
    number, then = (state.number(check.cluster, check.besides) for state in (before, after))
    if then > max(number, check.most):
        raise TooMany(check.cluster, number, check.most)


class MemoryStore(MemoryReader):
    """See protocol.Store. `memory` None: one of its own."""

    def __init__(self, memory: Memory | None = None, declared: Declared = _NOTHING, start: int | None = None) -> None:
        """`declared`, `start`: as of the embedded store (lmdb.open_store)."""
        memory = memory if memory is not None else Memory()
        super().__init__(memory, Indexes(declared.indexes), lambda: memory.state)
        self._leave: list[Callable[[], None]] = []
        self._closed = False
        with memory.lock:
            if not memory.state.revision:
                first = max(start or 0, int(time.time() * 1_000_000))
                memory.state = _State(first, first)
            memory.state.revision = max(start or 0, memory.state.revision)
            memory.marked |= declared.marked
            self._complete(declared)

    def _complete(self, declared: Declared) -> None:
        """Make the indexes the ones that are declared, of their versions."""
        state, wanted = self._memory.state, {index.name: index.version for index in declared.indexes}
        built, self._memory.built = self._memory.built, wanted
        stale = {table(name) for name in {*built, *wanted} if built.get(name) != wanted.get(name)}
        state.rows = {at: value for at, value in state.rows.items() if at[0] not in stale}
        for key, record in state.objects.items():
            self._index(state, key, None, record)

    @contextmanager
    def view(self) -> Iterator[View]:
        with self._memory.lock:
            then = self._memory.state.copy()
        yield MemoryReader(self._memory, self._indexes, lambda: then)

    def write(self, *ops: Op) -> Future[list[int]]:
        return self.transact(ops, logged=True)

    def fill(self, *ops: Op) -> Future[list[int]]:
        return self.transact(ops, logged=False)

    def transact(self, ops: Sequence[Op], *, logged: bool, under: CheckRow | None = None) -> Future[list[int]]:
        answer: Future[list[int]] = Future()
        with self._memory.lock:
            if self._closed:
                raise RuntimeError("the store is closed")
            before = self._memory.state
            after = before.copy()
            try:
                self.check(under)
                check_apart(alike.expanded(ops)[0])
                revisions = [self._apply(after, op) for op in ops]
                for op in ops:
                    if isinstance(op, CheckNumber):
                        _check_number(op, before, after)
            except (RoleLost, Conflict, TooMany, ValueError) as refused:
                answer.set_exception(refused)
                return answer
            if not logged and after.revision > before.revision:
                after.oldest, after.log = after.revision, []
            self._memory.state = after
        answer.set_result(revisions)
        if after.revision > before.revision:
            self._ring()
        return answer

    def _apply(self, state: _State, op: Op) -> int:
        """Does it, and returns its revision."""
        if isinstance(op, CheckNumber):
            return 0
        if isinstance(op, RowOp):
            return self._apply_row(state, op)
        if isinstance(op, DeleteAll):
            return self._apply_all(state, op)
        if isinstance(op, PutAlike):
            return max((self._apply(state, each) for each in alike.each(op)), default=0)
        key, before = op.key, state.objects.get(op.key)
        limits.check_resource(key.resource)
        limits.check_length(key, 4 + len(limits.tail(key)))
        found = before.revision if before is not None else NEVER
        if op.expect is not None and op.expect != found:
            raise Conflict(key, op.expect, found)
        if isinstance(op, Check) or (isinstance(op, Delete) and before is None):
            return 0
        state.revision += 1
        record = None
        if isinstance(op, Put):
            limits.check_stamp(key, op.stamp)
            record = Record(key, state.revision, op.value, op.stamp)
        state.put(key, record)
        state.resources.add(key.resource)
        state.log.append(_Logged(state.revision, key, before, record))
        self._index(state, key, before, record)
        self._mark(state, key)
        return state.revision

    def _apply_all(self, state: _State, op: DeleteAll) -> int:
        gone = sorted(key for key in state.objects if key.cluster == op.cluster and not key.resource.startswith("~"))
        for key in gone:
            if state.objects[key].revision > op.since:
                raise Conflict(key, op.since, state.objects[key].revision)
        for key in gone:
            self._apply(state, Delete(key))
            state.log[-1] = state.log[-1]._replace(swept=True)
        return state.revision if gone else 0

    @staticmethod
    def _apply_row(state: _State, op: RowOp) -> int:
        limits.check_row(op.row)
        at = (op.table, op.row)
        expected = None if op.expect is ABSENT else op.expect
        if op.expect is not None and state.rows.get(at) != expected:
            raise RowConflict(op.table, op.row)
        if not isinstance(op, CheckRow):
            state.rows.pop(at, None)
            if isinstance(op, PutRow):
                state.rows[at] = op.value
        return 0

    def _index(self, state: _State, key: Key, before: Record | None, after: Record | None) -> None:
        for index in self._indexes.of(key.resource):
            was, now = (entries(index, key, r.value if r is not None else None) for r in (before, after))
            for row in was - now:
                state.rows.pop((table(index.name), row), None)
            for row in now - was:
                state.rows[table(index.name), row] = b""

    def _mark(self, state: _State, key: Key) -> None:
        if key.resource in self._memory.marked:
            state.marked = state.marks[key.cluster] = state.revision
        if not any(other.cluster == key.cluster for other in state.objects):
            state.marks.pop(key.cluster, None)

    def check(self, under: CheckRow | None) -> None:
        """Raises RoleLost. The memory is locked."""
        if under is not None:
            expected = None if under.expect is ABSENT else under.expect
            if self._memory.state.rows.get((under.table, under.row)) != expected:
                raise RoleLost(under.row)

    def compact(self, keep: int, under: CheckRow | None = None) -> None:
        with self._memory.lock:
            self.check(under)
            state = self._memory.state
            gone = state.log[: max(0, len(state.log) - max(0, keep))]
            if gone:
                state.oldest, state.log = gone[-1].revision, state.log[len(gone) :]

    def clear(self, under: CheckRow | None = None) -> None:
        with self._memory.lock:
            self.check(under)
            before = self._memory.state
            revision = before.revision + 1
            roles = {at: value for at, value in before.rows.items() if at[0] == Table.ROLES}
            self._memory.state = _State(revision, revision, rows=roles, resources=before.resources, marked=revision)
        self._ring()

    def under(self, role: CheckRow, lost: Callable[[], None] = lambda: None) -> Store:
        return _Handle(self, role, lost)

    def subscribe(self, ring: Callable[[], None]) -> Callable[[], None]:
        def entry() -> None:  # one per subscription: the same callable may subscribe twice and leave once
            ring()

        def leave() -> None:
            with self._memory.lock:
                self._memory.rings = tuple(each for each in self._memory.rings if each is not entry)

        with self._memory.lock:
            self._memory.rings = (*self._memory.rings, entry)
        self._leave.append(leave)
        return leave

    def _ring(self) -> None:
        for ring in self._memory.rings:
            try:
                ring()
            except Exception:
                log.exception("a subscriber of the store failed")

    def close(self) -> None:
        with self._memory.lock:
            self._closed = True
        for leave in self._leave:
            leave()


class _Handle(MemoryReader):
    """See Store.under."""

    def __init__(self, store: MemoryStore, role: CheckRow, lost: Callable[[], None]) -> None:
        super().__init__(store._memory, store._indexes, store._state)
        self.view, self.subscribe, self.under = store.view, store.subscribe, store.under
        self._store, self._role, self._lost = store, role, lost

    def write(self, *ops: Op) -> Future[list[int]]:
        return self._told(self._store.transact(ops, logged=True, under=self._role))

    def fill(self, *ops: Op) -> Future[list[int]]:
        return self._told(self._store.transact(ops, logged=False, under=self._role))

    def _told(self, answer: Future[list[int]]) -> Future[list[int]]:
        if isinstance(answer.exception(), RoleLost):
            self._lost()
        return answer

    def compact(self, keep: int) -> None:
        try:
            self._store.compact(keep, self._role)
        except RoleLost:
            self._lost()
            raise

    def clear(self) -> None:
        try:
            self._store.clear(self._role)
        except RoleLost:
            self._lost()
            raise

    def close(self) -> None:
        """The store stays open."""
