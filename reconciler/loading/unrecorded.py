"""What a store holds that neither git nor the status branch knows: runtime objects, node ports, and workspaces that
were made through the API with all that is in them.

Called by whoever forgets the rest (behind), and for a backup, which is to have just this. Written into a store that
holds nothing else, before the first load, it is taken for what a store was that is older than what is recorded: the
rest is recovered around it, and what belongs to no workspace goes (behind.sweep).
"""

from __future__ import annotations

from collections.abc import Iterator

from apiserver.model.tables import Table
from apiserver.registry import tree
from apiserver.storage.paging import pages, rows
from apiserver.storage.protocol import Put, PutRow, Record, Row, View
from reconciler.plan import residue

BY_PATH = frozenset({Table.WORKSPACES, Table.HELD, Table.LEAVING, Table.PINNED, Table.SOURCED, Table.PROVIDERS})
"""Tables whose rows have a workspace's path for a key."""
_OF_PROCESSES = frozenset({Table.ROLES})
"""Of those that run, and of no use to others."""


class Unrecorded:
    """Tells of what a store holds whether nobody else has it."""

    def __init__(self, store: View) -> None:
        self._store = store
        self._stored = {record.path: record.cluster for record in tree.stored(store)}
        self._clusters = frozenset(self._stored.values())

    def has(self, record: Record) -> bool:
        """Whether it is the only one to have an object."""
        if record.key.cluster in self._clusters:
            return True
        return not record.key.resource.startswith("~") and residue.is_runtime(record.value)

    def has_row(self, table: Table, row: Row) -> bool:
        return table == Table.NODE_PORTS or _whose(table, row) in self._stored

    def everything(self) -> Iterator[Put | PutRow]:
        """As it is written again."""
        for table in Table:
            if table not in _OF_PROCESSES:
                yield from (PutRow(table, *row) for row in rows(self._store, table) if self.has_row(table, row))
        for resource in self._store.resources():
            for page in pages(self._store, resource):
                yield from (Put(r.key, r.value, stamp=r.stamp) for r in page if self.has(r))


def _whose(table: Table, row: Row) -> str:
    """The path of the workspace that a row is about; "" where it is about none."""
    if table in BY_PATH:
        return row.key
    return row.key.rpartition("\0")[2] if table in (Table.CONSUMERS, Table.TYPED) else ""
