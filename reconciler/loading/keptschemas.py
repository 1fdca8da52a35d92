"""Schemas that their providers took away, kept for those who are bound to them: until the last of these is gone.

Called by steps at the end of a step, when all that it wrote can be read.
"""

from __future__ import annotations

from apiserver.registry import indexes, tree
from apiserver.registry.catalog import KEPT_SCHEMAS
from apiserver.storage.paging import pages
from apiserver.storage.protocol import Delete, Store, View


def let_go(store: Store) -> None:
    """Takes those away that no binding names any more. What a recovery could not bring back may name any of them."""
    if not store.count(KEPT_SCHEMAS) or tree.fleet(store).lost:
        return
    for page in pages(store, KEPT_SCHEMAS):
        ops = [Delete(record.key) for record in page if not is_named(store, record.key.cluster, record.key.name)]
        if ops:
            store.write(*ops).result()


def is_named(store: View, cluster: str, name: str) -> bool:
    """Whether any binding is bound with the schema of this name of a provider's logical cluster."""
    return bool(store.indexed(indexes.BOUND, indexes.schema(cluster, name), whole=True, limit=1))
