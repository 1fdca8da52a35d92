"""Schemas that their providers took away, kept for those who are bound to them: until the last of these is gone.

Called by steps at the end of a step, when all that it wrote can be read.
"""

from __future__ import annotations

from apiserver.registry import tree
from apiserver.registry.keptschemas import KEPT_SCHEMAS, is_named, ref_of_kept
from apiserver.storage.paging import pages
from apiserver.storage.protocol import Delete, Store


def let_go(store: Store) -> set[str]:
    """Takes those away that no binding names any more; the paths of their providers, which may be held for them. What a
    recovery could not bring back may name any of them."""
    providers: set[str] = set()
    if not store.count(KEPT_SCHEMAS) or tree.fleet(store).lost:
        return providers
    for page in pages(store, KEPT_SCHEMAS):
        gone = [record.key for record in page if not is_named(store, ref_of_kept(record.key))]
        if gone:
            store.write(*map(Delete, gone)).result()
        found = (tree.workspace_of(store, cluster) for cluster in {key.cluster for key in gone})
        providers |= {record.path for record in found if record is not None}
    return providers
