"""What a workspace leaves behind when its directory is gone: nothing.

Only called for the difference of two fully read commits (see steps): absence alone never removes anything.
"""

from __future__ import annotations

from apiserver.model import paths
from apiserver.model.keys import Key
from apiserver.model.tables import Table, row_key
from apiserver.registry.catalog import KEPT_SCHEMAS, SCHEMAS
from apiserver.registry.tree import WorkspaceRecord, forgotten
from apiserver.storage.paging import rows
from apiserver.storage.protocol import Delete, DeleteRow, Put, Store
from reconciler.loading.changeset import ChangeKind, ObjectChange, WorkspaceChanges
from reconciler.loading.consumers import listing
from reconciler.plan.computed import WORKSPACES


def remove(
    store: Store, record: WorkspaceRecord, parent: WorkspaceRecord | None, *, bound: bool = False
) -> WorkspaceChanges:
    """What deletes a workspace with all of its objects, whether anybody serves their kind or not, its record last.
    `bound`: others bind its APIs and are served with them until they are changed."""
    changes = WorkspaceChanges(record.path, ChangeKind.DELETED)
    gone = [key for key in store.keys(record.cluster) if not key.resource.startswith("~")]
    if parent is not None:
        gone.append(Key(WORKSPACES, parent.cluster, "", paths.base(record.path)))
    changes.objects = [ObjectChange(ChangeKind.DELETED, Delete(key)) for key in gone]
    if bound:
        schemas = store.scan(SCHEMAS, record.cluster).records
        changes.also.extend(Put(r.key._replace(resource=KEPT_SCHEMAS), r.value) for r in schemas)
    ports = rows(store, Table.NODE_PORTS, row_key(record.cluster, ""))
    changes.also.extend(DeleteRow(Table.NODE_PORTS, row.key) for row in ports)
    changes.also.extend(listing(store, record.path, ()))
    changes.also.extend(forgotten(record))
    return changes
