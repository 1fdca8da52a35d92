"""What the type of a workspace that was made through the API says by now, and what that changes of the workspace.

Called by controllers/typefollowers. As of one that git declares, labels and maintained bindings follow the type while
that is there; all else came with the workspace, or stays (loading/workspacetype).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import orjson

from apiserver.model import marks, paths
from apiserver.model.commits import NONE
from apiserver.model.keys import Key
from apiserver.model.origins import TYPED
from apiserver.model.storagenames import BINDINGS, WORKSPACES
from apiserver.model.tables import Table
from apiserver.registry import codec, tree
from apiserver.registry import workspacetypes as types
from apiserver.registry.kinds import builtins_of
from apiserver.registry.tree import WorkspaceRecord, put_workspace
from apiserver.registry.workspacetypes import ResolvedType, TypeRef
from apiserver.storage.protocol import Op, Put, Store
from reconciler.loading.changeset import WorkspaceChanges
from reconciler.loading.clusterobject import no_line
from reconciler.loading.effects import Effects
from reconciler.loading.moment import Moment, OneMoment
from reconciler.loading.render import Renderer
from reconciler.loading.settled import SettledWorld
from reconciler.loading.sources import generated
from reconciler.plan import computed
from reconciler.plan.summary import Summary

Object = dict[str, Any]


def following(store: Store, record: WorkspaceRecord, moment: Moment) -> list[Op]:
    """What makes the workspace what its type says by now; nothing where that is gone. `moment` names no commit."""
    world = SettledWorld(store)
    kind = types.resolve(None, record.path, None, world.find_type, TypeRef.parse(record.type))
    if kind.error:
        return []
    return [*_bindings(world, record, kind, moment), *_labels(store, record, dict(kind.labels))]


def _bindings(world: SettledWorld, record: WorkspaceRecord, kind: ResolvedType, moment: Moment) -> Iterator[Op]:
    """Maintained ones that are missing, and the claims that the others accept. What each is bound to is said by the
    loop over bindings; one of that name that somebody made is theirs."""
    store, fleet = world.store, tree.fleet(world.store).fleet
    renderer = Renderer(builtins_of(record.builtins, record.path), record.cluster, no_line)
    changes = WorkspaceChanges(record.path)
    effects = Effects(fleet, record.path, moment, OneMoment(moment), Summary(NONE), changes=changes)
    for path, name in kind.bindings:
        export = world.find_export(path, name) if (path, name) not in kind.initial else None
        found = store.get(Key(BINDINGS, record.cluster, "", computed.default_binding_name(record.cluster, path, name)))
        if (path, name) in kind.initial or (found is not None and (export is None or not _is_ours(found.value))):
            continue
        wanted = computed.default_binding(record.cluster, path, name, export.claims if export is not None else ())
        for manifest in generated([wanted], TYPED):
            declared, _ = renderer.render(manifest)
            if declared is not None:
                effects.put(declared, None, found, None)
    yield from changes.ops()


def _is_ours(value: bytes) -> bool:
    metadata = orjson.loads(value)["metadata"]
    ours = (metadata.get("annotations") or {}).get(marks.ORIGIN) == marks.SYSTEM
    return ours and not metadata.get("deletionTimestamp")


def _labels(store: Store, record: WorkspaceRecord, now: dict[str, str]) -> list[Op]:
    """Those of its Workspace, where that does not say otherwise itself; a home has none."""
    if record.labels == now:
        return []
    row = put_workspace(replace(record, labels=now))._replace(expect=store.get_row(Table.WORKSPACES, record.path))
    parent = tree.workspace_at(store, record.parent) if record.parent else None
    found = store.get(Key(WORKSPACES, parent.cluster, "", paths.base(record.path))) if parent is not None else None
    if found is None:
        return [row]
    obj: Object = orjson.loads(found.value)
    said = {k: v for k, v in (obj["metadata"].get("labels") or {}).items() if record.labels.get(k) != v}
    metadata = {**obj["metadata"], "labels": {**now, **said}}
    return [row, Put(found.key, codec.encode({**obj, "metadata": metadata}), found.revision, found.stamp)]
