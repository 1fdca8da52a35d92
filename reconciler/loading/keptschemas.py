"""Schemas that their providers took away, kept for those who are bound to them: until the last of these is gone.

Called by steps: with what a workspace writes, and at the end of a step that may have ended any, when all that it wrote
can be read. What requests do to bindings, and a step that was cut off, controllers/keptschemas looks after.
"""

from __future__ import annotations

from apiserver.model.storagenames import BINDINGS
from apiserver.registry import tree
from apiserver.registry.keptschemas import KEPT_SCHEMAS, is_named, ref_of_kept
from apiserver.storage.paging import pages
from apiserver.storage.protocol import Delete, Put, Store
from reconciler.loading.changeset import ChangeKind, WorkspaceChanges


def may_end(changes: WorkspaceChanges) -> bool:
    """Whether a binding may name fewer of them from then on, or one is kept that none may name."""
    fewer = any(each.change is not ChangeKind.CREATED and each.key.resource == BINDINGS for each in changes.objects)
    return fewer or any(isinstance(op, Put) and op.key.resource == KEPT_SCHEMAS for op in changes.also)


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
