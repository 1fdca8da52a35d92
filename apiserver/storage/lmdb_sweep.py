"""All that a workspace has, as one operation takes it away (protocol.DeleteAll): the objects of a resource stand side
by side, and go without being looked at one by one.

Called by a group's transaction (lmdb_group.py), which says what an object that goes leaves behind.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from apiserver.storage import lmdb_layout as layout
from apiserver.storage.lmdb_environment import LmdbEnvironment
from apiserver.storage.lmdb_library import Transaction
from apiserver.storage.protocol import Conflict, DeleteAll


class Gone(NamedTuple):
    """The objects of one resource that go. `rows`: their keys as stored, and their records; `revision`: of the first of
    these deletions."""

    resource: str
    number: bytes
    cluster: str
    rows: list[tuple[bytes, bytes]]
    revision: int

    @property
    def last(self) -> int:
        """The revision at its end."""
        return self.revision + len(self.rows) - 1


def all_of(
    env: LmdbEnvironment, txn: Transaction, resources: Iterable[tuple[str, bytes]], op: DeleteAll, revision: int
) -> list[Gone]:
    """`resources`: those that the workspace has objects of, sorted; `revision`: the last that was taken. Raises
    Conflict."""
    found: list[Gone] = []
    since = layout.U64.pack(op.since)
    with txn.cursor(db=env.objects) as cursor:
        for resource, number in resources:
            first, end = layout.prefix(number, op.cluster, None)
            if resource.startswith("~") or not cursor.set_range(first):
                continue
            rows = _until(end, cursor.iternext())
            for full, raw in rows:
                if raw[:8] > since:
                    raise Conflict(layout.split(full, resource), op.since, layout.revision_of(raw))
            if rows:
                found.append(Gone(resource, number, op.cluster, rows, revision + 1))
                revision += len(rows)
    return found


def _until(end: bytes, there: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    found: list[tuple[bytes, bytes]] = []
    for row in there:
        if row[0] >= end:
            break
        found.append(row)
    return found
