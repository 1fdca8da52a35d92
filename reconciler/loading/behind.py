"""A store that is older than what the status branch recorded of it: a disk that was restored, store/ copied back, a
machine that lost its power before the disk had everything.

Called before such a store is served (`forget`), and by the first load that follows (`sweep`). What git and the status
branch know is recovered from them, as into an empty store. What neither knows, runtime objects and node ports, stays as
it stood in the store: nobody else has it.
"""

from __future__ import annotations

from apiserver.model.tables import Table
from apiserver.registry import tree
from apiserver.storage.paging import pages, rows
from apiserver.storage.protocol import Delete, DeleteRow, Store
from reconciler.plan import residue

_PAGE = 1000
_KEPT = frozenset({Table.NODE_PORTS, Table.ROLES})


def forget(store: Store) -> tuple[int, int]:
    """Removes what is to be recovered; how many objects went, and how many stayed. Whoever watched begins anew, and is
    told of no deletion. Cut off, it is to be done again.

    The fleet's record goes first: without it nothing is served, and what is not loaded yet is asked for again.
    """
    tables = (Table.FLEET, *(table for table in Table if table != Table.FLEET and table not in _KEPT))
    for table in tables:
        while found := store.scan_rows(table, limit=_PAGE):
            store.fill(*(DeleteRow(table, row.key) for row in found)).result()
    gone = kept = 0
    for resource in store.resources():
        ours = resource.startswith("~")
        for page in pages(store, resource):
            ops = [Delete(r.key) for r in page if ours or not residue.is_runtime(r.value)]
            store.fill(*ops).result()
            gone, kept = gone + len(ops), kept + len(page) - len(ops)
    return gone, kept


def has_objects(store: Store) -> bool:
    """Whether there is anything of any workspace."""
    return any(store.count(resource) for resource in store.resources() if not resource.startswith("~"))


def sweep(store: Store) -> int:
    """Removes what belongs to no workspace; how many objects. To be called when every workspace there is has a record:
    a fleet that was recovered in full, and whose logical clusters are these."""
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
