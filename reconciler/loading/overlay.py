"""A store over another one in which some workspaces are absent, and whose writes stay where they are.

Made by shown: what a recovery would write for those workspaces is found out by recovering them here, and only what
differs from what the other store holds is written there. And by trial, which hides nothing and writes nothing anywhere:
there a question costs what it does below, and what was written here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from apiserver.model.keys import Key
from apiserver.model.tables import Table
from apiserver.registry.catalog import MARKED
from apiserver.storage import alike
from apiserver.storage.declared import Index, IndexEntry, begin_of, covers, entries, entry
from apiserver.storage.paging import rows
from apiserver.storage.protocol import (
    ABSENT,
    Change,
    Check,
    CheckNumber,
    CheckRow,
    Conflict,
    Delete,
    DeleteAll,
    Op,
    Page,
    Put,
    PutAlike,
    PutRow,
    Record,
    Row,
    RowConflict,
    RowOp,
    Store,
    Swept,
    View,
)


class Hidden(Protocol):
    """What of the other store is absent here."""

    def key(self, key: Key) -> bool: ...

    def row(self, table: Table, row: str) -> bool: ...


class Overlay:
    """As Store. Not for several threads; history, watching and the like are the other store's alone."""

    def __init__(self, below: View, hidden: Hidden | None = None) -> None:
        """`hidden` None: nothing is."""
        self._all_shown = hidden is None
        self._below = below
        self._hidden = hidden if hidden is not None else _Nothing()
        self._written: dict[Key, Record | None] = {}
        self._rows: dict[tuple[Table, str], bytes | None] = {}
        self._count = 0
        self._marked = 0

    @property
    def written(self) -> Mapping[Key, bytes | None]:
        """What was written here, None for what was deleted."""
        return {key: record.value if record is not None else None for key, record in self._written.items()}

    @property
    def written_rows(self) -> Mapping[tuple[Table, str], bytes | None]:
        """As `written`, by table and key."""
        return self._rows

    def revision(self) -> int:
        return self._below.revision() + self._count

    def marked(self, cluster: str | None = None) -> int:
        return self._below.marked(cluster) + self._marked

    def get(self, key: Key) -> Record | None:
        if key in self._written:
            return self._written[key]
        return None if self._hidden.key(key) else self._below.get(key)

    def get_many(self, keys: Sequence[Key]) -> list[Record | None]:
        return [self.get(key) for key in keys]

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
        if at is not None:
            raise ValueError("what is written aside has no history")
        if self._all_shown and not count and limit is not None:
            # So many at least stand in front of what is written here.
            most = limit + len(self._here(resource, cluster, namespace)) + 1
            below = self._below.scan(resource, cluster, namespace, after=after, limit=most, count=False).records
        else:
            below = self._below.scan(resource, cluster, namespace, count=count).records
        found = {record.key: record for record in below if not self._hidden.key(record.key)}
        for key in self._here(resource, cluster, namespace):
            record = self._written[key]
            found.pop(key, None)
            if record is not None:
                found[key] = record
        ordered = [found[key] for key in sorted(found) if after is None or key > after]
        page = ordered[:limit]
        more = page[-1].key if len(page) < len(ordered) and page else None
        return Page(page, self.revision(), more, len(ordered) - len(page))

    def _here(self, resource: str, cluster: str | None, namespace: str | None) -> list[Key]:
        """What was written here of what is asked for."""
        keys = (key for key in self._written if key.resource == resource)
        return [key for key in keys if cluster in (None, key.cluster) and namespace in (None, key.namespace)]

    def get_row(self, table: Table, row: str) -> bytes | None:
        if (table, row) in self._rows:
            return self._rows[table, row]
        return None if self._hidden.row(table, row) else self._below.get_row(table, row)

    def get_rows(self, table: Table, rows: Sequence[str]) -> list[bytes | None]:
        return [self.get_row(table, each) for each in rows]

    def scan_rows(
        self, table: Table, prefix: str = "", *, after: str | None = None, limit: int | None = None
    ) -> list[Row]:
        here = {row: value for (at, row), value in self._rows.items() if at == table and row.startswith(prefix)}
        if self._all_shown and limit is not None:
            below: Iterable[Row] = self._below.scan_rows(table, prefix, after=after, limit=limit + len(here))
        else:
            below = rows(self._below, table, prefix)
        there = {row.key: row.value for row in below if not self._hidden.row(table, row.key)}
        found = [Row(row, value) for row, value in sorted({**there, **here}.items()) if value is not None]
        return [row for row in found if after is None or row.key > after][:limit]

    def indexed(
        self,
        index: Index,
        begin: str = "",
        *,
        whole: bool = False,
        after: IndexEntry | None = None,
        limit: int | None = None,
    ) -> list[IndexEntry]:
        below = self._below.indexed(index, begin, whole=whole)
        found = {each for each in below if each.key not in self._written and not self._hidden.key(each.key)}
        for key, record in self._written.items():
            if covers(index, key.resource):
                there = entries(index, key, record.value if record is not None else None)
                found |= {entry(row) for row in there if row.startswith(begin_of(begin, whole))}
        return sorted(each for each in found if after is None or each > after)[:limit]

    def tally(self, index: Index, term: str) -> int:  # noqa: ARG002
        raise LookupError(f"what is written aside is in no index, {index.name} included")

    def resources(self, cluster: str | None = None) -> list[str]:
        written = (key.resource for key in self._written if cluster in (None, key.cluster))
        found = sorted({*self._below.resources(cluster), *written})
        return found if cluster is None else [each for each in found if self.count(each, cluster)]

    def keys(self, cluster: str) -> list[Key]:
        below = {key for key in self._below.keys(cluster) if key not in self._written and not self._hidden.key(key)}
        here = {key for key, record in self._written.items() if key.cluster == cluster and record is not None}
        return sorted(below | here)

    def count(self, resource: str, cluster: str | None = None, namespace: str | None = None) -> int:
        if not self._all_shown:
            return len(self.scan(resource, cluster, namespace).records)
        below = self._below.count(resource, cluster, namespace)
        return below + self._more(self._here(resource, cluster, namespace))

    def _more(self, keys: Iterable[Key]) -> int:
        """By how many of these there are more here than below."""
        return sum((self._written[key] is not None) - (self._below.get(key) is not None) for key in keys)

    def number(self, cluster: str, besides: frozenset[str] = frozenset()) -> int:
        if self._all_shown:
            here = (key for key in self._written if key.cluster == cluster and not key.resource.startswith("~"))
            more = self._more(key for key in here if key.resource.partition(":")[0] not in besides)
            return self._below.number(cluster, besides) + more
        names = (key.resource for key in self.keys(cluster))
        return sum(not name.startswith("~") and name.partition(":")[0] not in besides for name in names)

    def write(self, *ops: Op) -> Future[list[int]]:
        done: Future[list[int]] = Future()
        undo = self._undo(ops)
        try:
            done.set_result([self._apply(op) for op in ops])
        except Conflict as conflict:
            undo()
            done.set_exception(conflict)
        return done

    def _undo(self, ops: Sequence[Op]) -> Callable[[], None]:
        """What puts back all that one transaction writes."""
        ops = alike.expanded(ops)[0]
        keys = {op.key for op in ops if isinstance(op, Put | Delete)}
        keys |= {key for op in ops if isinstance(op, DeleteAll) for key in self.keys(op.cluster)}
        places = {(op.table, op.row) for op in ops if isinstance(op, RowOp)}
        written = {key: self._written[key] for key in keys if key in self._written}
        there = {place: self._rows[place] for place in places if place in self._rows}
        numbers = self._count, self._marked

        def undo() -> None:
            self._written = {key: record for key, record in self._written.items() if key not in keys} | written
            self._rows = {place: row for place, row in self._rows.items() if place not in places} | there
            self._count, self._marked = numbers

        return undo

    def fill(self, *ops: Op) -> Future[list[int]]:
        return self.write(*ops)  # there is no log

    def _apply(self, op: Op) -> int:
        if isinstance(op, CheckNumber):
            return 0  # it is for writes through the API
        if isinstance(op, RowOp):
            return self._apply_row(op)
        if isinstance(op, DeleteAll):
            return max([self._apply(Delete(key)) for key in self._all_of(op)], default=0)
        if isinstance(op, PutAlike):
            return max([self._apply(each) for each in alike.each(op)], default=0)
        found = self.get(op.key)
        revision = found.revision if found is not None else 0
        if op.expect is not None and op.expect != revision:
            raise Conflict(op.key, op.expect, revision)
        if isinstance(op, Check) or (isinstance(op, Delete) and found is None):
            return 0
        self._count += 1
        self._marked += op.key.resource in MARKED
        stamp = op.stamp if isinstance(op, Put) else b""
        self._written[op.key] = None if isinstance(op, Delete) else Record(op.key, self.revision(), op.value, stamp)
        return self.revision()

    def _all_of(self, op: DeleteAll) -> list[Key]:
        """What it takes away. Raises Conflict."""
        found = [key for key in self.keys(op.cluster) if not key.resource.startswith("~")]
        for record in self.get_many(found):
            if record is not None and record.revision > op.since:
                raise Conflict(record.key, op.since, record.revision)
        return found

    def _apply_row(self, op: RowOp) -> int:
        expected = None if op.expect is ABSENT else op.expect
        if op.expect is not None and self.get_row(op.table, op.row) != expected:
            raise RowConflict(op.table, op.row)
        if not isinstance(op, CheckRow):
            self._rows[op.table, op.row] = op.value if isinstance(op, PutRow) else None
        return 0

    def view(self) -> AbstractContextManager[View]:
        return nullcontext(self)  # one thread has it

    # -- the other store's

    def oldest(self) -> int:
        return self._below.oldest()

    def changes(self, after: int, limit: int = 10_000, swept: Swept | None = None) -> list[Change]:
        return self._below.changes(after, limit, swept)

    def compact(self, keep: int) -> None:
        raise NotImplementedError

    def clear(self) -> None:
        raise NotImplementedError

    def under(self, role: CheckRow, lost: Callable[[], None] = lambda: None) -> Store:
        raise NotImplementedError

    def subscribe(self, ring: Callable[[], None]) -> Callable[[], None]:  # noqa: ARG002
        return lambda: None  # nobody else sees what is written here

    def close(self) -> None:
        """The other store stays open."""


class _Nothing:
    def key(self, key: Key) -> bool:  # noqa: ARG002
        return False

    def row(self, table: Table, row: str) -> bool:  # noqa: ARG002
        return False
