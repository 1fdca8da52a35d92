"""What a PutAlike stands for: the same, object by object and row by row.

Called by stores that do no better than that, by the LMDB store where any of many is not as it is expected, and by
whoever looks at what is written. A worked example, of two with one object each:

    PutAlike(["c1", "c2"], ["a", "b"], (AlikeObjects("things", None, "", "thing", template, [b"1", b"2"]),), t, rows)
        → Put(things c1/thing, NEVER), PutRow(t, rows[0]), Put(things c2/thing, NEVER), PutRow(t, rows[1])
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from operator import attrgetter

from apiserver.model.keys import Key
from apiserver.storage.protocol import NEVER, AlikeObjects, Op, Put, PutAlike, PutRow, SingleOp
from apiserver.storage.templates import Filled

_OWN = ("clusters", "names", "rows")


def each(op: PutAlike) -> Iterator[Put | PutRow]:
    for at, (row, value) in enumerate(op.rows):
        for column in op.columns:
            yield put(op, column, at)
        yield PutRow(op.table, row, value)


def put(op: PutAlike, column: AlikeObjects, at: int) -> Put:
    """The object of one of them that stands in a column."""
    resource, cluster, namespace, name, template, values = column
    key = Key(
        resource,
        op.clusters[at] if cluster is None else cluster,
        namespace,
        op.names[at] if name is None else name,
    )
    if not template:
        return Put(key, values[at], NEVER)
    return Put(key, b"", NEVER, b"", Filled(template, values[at]))


def common(op: PutAlike) -> tuple[object, ...]:
    """What is the same of ops that can be one."""
    return op.table, *(column[:-1] for column in op.columns)


def joined(ops: Sequence[PutAlike]) -> PutAlike:
    """One that creates what all of these do, one after the other."""
    first = ops[0]
    if len(ops) == 1:
        return first
    columns = (
        column._replace(values=list(chain.from_iterable(op.columns[at].values for op in ops)))
        for at, column in enumerate(first.columns)
    )
    clusters, names, rows = (list(chain.from_iterable(map(attrgetter(part), ops))) for part in _OWN)
    return PutAlike(clusters, names, tuple(columns), first.table, rows)


def expanded(ops: Sequence[Op]) -> tuple[list[SingleOp], list[int]]:
    """A call without such ops, and how many ops stand for each of it."""
    out, numbers = list[SingleOp](), list[int]()
    for op in ops:
        before = len(out)
        out += each(op) if isinstance(op, PutAlike) else (op,)
        numbers.append(len(out) - before)
    return out, numbers


def last(revisions: Sequence[int], numbers: Sequence[int]) -> list[int]:
    """The revision of each op of a call, of those of the ops that stand for it."""
    out, begin = list[int](), 0
    for number in numbers:
        out.append(max(revisions[begin : begin + number], default=0))
        begin += number
    return out
