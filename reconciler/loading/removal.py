"""What a workspace leaves behind when its directory is gone: nothing.

Only called for the difference of two fully read commits (see steps): absence alone never removes anything.
"""

from __future__ import annotations

from collections.abc import Iterable

from apiserver.model import paths
from apiserver.model.keys import Key
from apiserver.model.storagenames import SCHEMAS, WORKSPACES
from apiserver.model.tables import Table, row_key
from apiserver.registry import keptschemas
from apiserver.registry.tree import WorkspaceRecord, forgotten
from apiserver.storage.paging import rows
from apiserver.storage.protocol import Delete, DeleteAll, DeleteRow, Op, Record, Store, View
from reconciler.loading.changeset import ChangeKind, ObjectChange, WorkspaceChanges
from reconciler.loading.consumers import listing


def kept_schemas(store: View, gone: Iterable[Key]) -> list[Op]:
    """What keeps schemas that go, for those that are served with them until they are changed."""
    schemas = [key for key in gone if key.resource == SCHEMAS]
    return [*keptschemas.keeping(store, store.get_many(schemas))] if schemas else []


def remove(store: Store, record: WorkspaceRecord, parent: WorkspaceRecord | None) -> WorkspaceChanges:
    """What deletes a workspace with all of its objects, whether anybody serves their kind or not, its record last."""
    changes = WorkspaceChanges(record.path, ChangeKind.DELETED)
    gone = [key for key in store.keys(record.cluster) if not key.resource.startswith("~")]
    if parent is not None:
        gone.append(Key(WORKSPACES, parent.cluster, "", paths.base(record.path)))
    changes.objects = [ObjectChange(ChangeKind.DELETED, Delete(key)) for key in gone]
    changes.also += [*kept_schemas(store, gone), *_beside(store, record)]
    return changes


def at_once(view: View, record: WorkspaceRecord, above: Record | None) -> list[Op]:
    """The same, without reading what is in it: refused where somebody writes to any of that after the view at hand.
    `above`: the Workspace that stands for it, None where there is none."""
    ops: list[Op] = [DeleteAll(record.cluster, view.revision())]
    if above is not None:
        ops.append(Delete(above.key, above.revision))
    if view.count(SCHEMAS, record.cluster):
        ops += kept_schemas(view, view.keys(record.cluster))
    return [*ops, *_beside(view, record)]


def _beside(store: View, record: WorkspaceRecord) -> list[Op]:
    """What takes away what is kept of a workspace beside its objects, its record last."""
    ports = rows(store, Table.NODE_PORTS, row_key(record.cluster, ""))
    freed = [DeleteRow(Table.NODE_PORTS, row.key) for row in ports]
    return [*freed, *listing(store, record.path, ()), *forgotten(record)]


def unless_changed(store: View, changes: WorkspaceChanges) -> WorkspaceChanges:
    """The same removal, refused where somebody writes to anything of it from now on: of a few objects."""
    found = store.get_many([change.op.key for change in changes.objects])
    there = [each for each in found if each is not None]
    changes.objects = [ObjectChange(ChangeKind.DELETED, Delete(each.key, each.revision)) for each in there]
    return changes
