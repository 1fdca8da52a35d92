"""A store that is older than what the status branch recorded of it: a disk that was restored, store/ copied back, a
machine that lost its power before the disk had everything.

Called before such a store is served (`forget`), and by the first load that follows (`sweep`). What git and the status
branch know is recovered from them, as into an empty store. What neither knows, runtime objects, node
ports and workspaces that were made through the API, stays as it stood in the store: nobody else has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from apiserver.model import paths
from apiserver.model.keys import Key
from apiserver.model.storagenames import WORKSPACES
from apiserver.model.tables import Table
from apiserver.registry import tree
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.paging import pages, rows
from apiserver.storage.protocol import Delete, DeleteRow, Row, Store, View
from reconciler.loading.unrecorded import Unrecorded

_PAGE = 1000


def forget(store: Store) -> tuple[int, int]:
    """Removes what is to be recovered; how many objects went, and how many stayed. Whoever watched begins anew, and is
    told of no deletion. Cut off, it is to be done again.

    The fleet's record goes first: without it nothing is served, and what is not loaded yet is asked for again.
    """
    kept_here = Unrecorded(store)
    tables = (Table.FLEET, *(table for table in Table if table not in (Table.FLEET, Table.NODE_PORTS, Table.ROLES)))
    for table in tables:
        for page in _pages_of_rows(store, table):
            rows_of_git = (row for row in page if not kept_here.has_row(table, row))
            store.fill(*(DeleteRow(table, row.key) for row in rows_of_git)).result()
    gone = kept = 0
    for resource in store.resources():
        for records in pages(store, resource):
            ops = [Delete(r.key) for r in records if not kept_here.has(r)]
            store.fill(*ops).result()
            gone, kept = gone + len(ops), kept + len(records) - len(ops)
    return gone, kept


def _pages_of_rows(store: Store, table: Table) -> Iterator[Sequence[Row]]:
    after: str | None = None
    while page := store.scan_rows(table, after=after, limit=_PAGE):
        after = page[-1].key
        yield page


def has_objects(store: Store) -> bool:
    """Whether there is anything of any workspace."""
    return any(store.count(resource) for resource in store.resources() if not resource.startswith("~"))


def sweep(store: Store) -> int:
    """Removes what belongs to no workspace; how many objects. To be called when every workspace there is has a record:
    a fleet that was recovered in full, and whose logical clusters are these."""
    for record in tree.stored(store):
        if not _stands(store, record):
            store.fill(*tree.forgotten(record)).result()
    known: dict[str, bool] = {}

    def lost(cluster: str) -> bool:
        if cluster not in known:
            known[cluster] = store.get(tree.cluster_key(cluster)) is None
        return known[cluster]

    count = 0
    for resource in store.resources():
        if not resource.startswith("~"):
            for page in pages(store, resource):
                ops = [Delete(record.key) for record in page if lost(record.key.cluster)]
                store.fill(*ops).result()
                count += len(ops)
    for row in rows(store, Table.NODE_PORTS):
        if lost(row.key.partition("\0")[0]):
            store.fill(DeleteRow(Table.NODE_PORTS, row.key)).result()
    return count


def _stands(store: View, record: WorkspaceRecord) -> bool:
    """Whether there is still what a workspace that was made through the API stands in."""
    if not record.parent:
        return True  # a home stands in nothing
    parent = tree.workspace_at(store, record.parent)
    return parent is not None and store.get(Key(WORKSPACES, parent.cluster, "", paths.base(record.path))) is not None
