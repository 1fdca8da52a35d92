"""What many have that are alike (protocol.PutAlike), into LMDB: what is the same of all is found out once, and rows are
made column by column.

Called by a group's transaction (lmdb_group.py). It asks first whether all is as it nearly always is: nothing stands
where any of them comes, no two have the same key, keys are short and plain, no index has terms of any, and there were
objects of their resources before. Else the group takes them object by object, which says what is wrong.
"""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple

from apiserver.model.keys import Key
from apiserver.storage import alike, limits, lmdb_counts
from apiserver.storage import lmdb_indexes as indexes
from apiserver.storage import lmdb_layout as layout
from apiserver.storage import lmdb_rows as rows
from apiserver.storage.lmdb_environment import LmdbEnvironment, State
from apiserver.storage.lmdb_library import Transaction
from apiserver.storage.lmdb_templates import References
from apiserver.storage.protocol import AlikeObjects, PutAlike


class Upkeep(NamedTuple):
    """What a transaction keeps up beside the objects. `interned`: as Group has it."""

    counted: lmdb_counts.Counted
    references: References
    forms: indexes.ByForm
    interned: dict[str, bytes]


class _Placed(NamedTuple):
    """A column, the id of its resource, and its objects' keys as they are stored."""

    column: AlikeObjects
    number: bytes
    fulls: list[bytes]


class AlikeRows:
    """One op. `write` is only to be called where `is_usual`."""

    def __init__(self, env: LmdbEnvironment, txn: Transaction, kept: Upkeep, op: PutAlike) -> None:
        self._env, self._txn, self._kept, self._op = env, txn, kept, op
        self._clusters: list[bytes] = []
        self._rows: list[bytes] = []
        self._placed: list[_Placed] = []

    def is_usual(self) -> bool:
        op = self._op
        texts = "\n".join((*op.clusters, *op.names, *(row for row, _ in op.rows)))
        if not op.rows or not op.columns or not texts.isascii() or "\0" in texts or not _differ(op):
            return False
        self._clusters, names = [each.encode() for each in op.clusters], [each.encode() for each in op.names]
        table = rows.encoded(op.table, "")
        self._rows = [table + row.encode() for row, _ in op.rows]
        for column in op.columns:
            number = self._kept.interned.get(column.resource) or self._env.resource_id(self._txn, column.resource)
            if number is None:
                return False
            self._placed.append(_Placed(column, number, _fulls(number, column, self._clusters, names)))
        longest = max(len(full) for each in self._placed for full in each.fulls)
        fit = longest <= limits.LONGEST and max(map(len, self._rows)) < layout.LONGEST
        return fit and self._are_new() and not any(map(self._is_indexed, self._placed))

    def _are_new(self) -> bool:
        """Whether nothing stands where they come. Of a workspace that has nothing no numbers are kept."""
        counted, shared = self._kept.counted, [each for each in self._placed if each.column.cluster is not None]
        if counted.has_any(self._clusters) or any(each.column.cluster in self._op.clusters for each in shared):
            return False
        if lmdb_counts.any_of(self._env, self._txn, self._clusters):
            return False
        cursor = self._txn.cursor(db=self._env.objects)
        return not any(cursor.getmulti(each.fulls) for each in shared)

    def _is_indexed(self, placed: _Placed) -> bool:
        """Whether an index may have terms of an object of a column."""
        column = placed.column
        if not column.template:
            return bool(self._env.indexes.of(column.resource))
        texts = b"\0".join(chain(column.values, placed.fulls))
        return bool(self._kept.forms.concerned_of(alike.put(self._op, column, 0), texts))

    def write(self, state: State, *, logged: bool) -> State:
        """All of them; the state behind that."""
        count, width, marks = len(self._rows), len(self._placed), self._env.marked
        end = state.revision + count * width
        numbers = list(map(layout.U64.pack, range(state.revision + 1, end + 1)))
        objects, own, marked, last_marked = list[tuple[bytes, bytes]](), list[bytes](), None, state.marked
        for at, (column, number, fulls) in enumerate(self._placed):
            revisions, is_marked = numbers[at::width], column.resource in marks
            head = self._kept.references.take_many(column.template, count) if column.template else layout.UNSTAMPED
            records = [each + head + said for each, said in zip(revisions, column.values, strict=True)]
            objects += zip(fulls, records, strict=True)
            last_marked = layout.revision_of(revisions[-1]) if is_marked else last_marked
            if column.cluster is None:
                own.append(number)
                marked = revisions if is_marked else marked
            else:
                self._kept.counted.several(fulls[0], count, last_marked if is_marked else None)
        self._put(objects, own, marked)
        if not logged:
            return State(end, end, last_marked, state.entries, state.size)
        return State(end, state.oldest, last_marked, state.entries + len(numbers), state.size + self._log(numbers))

    def _log(self, numbers: list[bytes]) -> int:
        """An entry for each; how many bytes that is."""
        entries = [b""] * len(numbers)
        for at, placed in enumerate(self._placed):
            entries[at :: len(self._placed)] = layout.created(placed.fulls)
        self._txn.cursor(db=self._env.log).putmulti(list(zip(numbers, entries, strict=True)), append=True)
        return sum(map(len, entries))

    def _put(self, objects: list[tuple[bytes, bytes]], own: list[bytes], marked: list[bytes] | None) -> None:
        """In the order of keys, so that pages are filled one after the other. `own`: the resources that each has one
        object of in its workspace; `marked`: the revisions of the marked one."""
        txn, env = self._txn, self._env
        objects.sort()
        txn.cursor(db=env.objects).putmulti(objects)
        values = (value for _, value in self._op.rows)
        txn.cursor(db=env.rows).putmulti(sorted(zip(self._rows, values, strict=True)))
        self._kept.counted.came(env, txn, self._clusters, own, marked)


def _differ(op: PutAlike) -> bool:
    """Whether no two of all objects, and no two rows, have the same key."""
    count, columns = len(op.rows), op.columns
    by_name = any(column.name is None and column.cluster is not None for column in columns)
    differ = len({*op.clusters}) == len({row for row, _ in op.rows}) == count
    if not differ or len({column.resource for column in columns}) < len(columns):
        return False
    return (not by_name or len({*op.names}) == count) and all(None in (each.cluster, each.name) for each in columns)


def _fulls(number: bytes, column: AlikeObjects, clusters: list[bytes], names: list[bytes]) -> list[bytes]:
    """The keys of a column's objects, as they are stored."""
    resource, cluster, namespace, name, _, _ = column
    around = number, limits.tail(Key(resource, cluster or "", namespace, name or ""))
    if cluster is not None:
        head = b"".join(around)
        return [head + each for each in names]
    tail = around[1]
    if name is not None:
        return [number + each + tail for each in clusters]
    return [number + each + tail + own for each, own in zip(clusters, names, strict=True)]
