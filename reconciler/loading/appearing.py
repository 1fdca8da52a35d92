"""What a workspace that appears has without declaring it, from forms where that is possible: its LogicalCluster, its
Workspace, the namespace `default`.

Called by newcomers, and by treeobjects, which makes all others.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from apiserver.model import clock, paths
from apiserver.model.identity import object_uid
from apiserver.model.keys import Key
from apiserver.model.origins import Origin
from apiserver.model.reserved import settable
from apiserver.model.storagenames import LOGICAL_CLUSTERS, WORKSPACES
from apiserver.registry.builtins.catalogue import ENTRIES
from apiserver.registry.codec import dump
from apiserver.registry.kinds import KindTable, workspace_builtins
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.templates import Kind
from reconciler.layout.manifest import Manifest
from reconciler.loading.changeset import ChangeKind, ObjectChange
from reconciler.loading.clusterobject import (
    cluster_key,
    facts_of,
    no_line,
    put_cluster,
    put_lasting,
    workspace_key,
)
from reconciler.loading.effects import Effects
from reconciler.loading.forms import Example, Forms, Nobody
from reconciler.loading.gather import EVERYWHERE
from reconciler.loading.render import Renderer
from reconciler.loading.workspaceobject import WorkspaceObjects

Object = dict[str, Any]

_CLUSTER = (Kind.UID, Kind.TIME, Kind.TEXT, Kind.TEXT, Kind.TEXT)
_WORKSPACE = (Kind.UID, Kind.TIME, Kind.TEXT, Kind.COMMIT, Kind.TEXT)
"""How the texts of an object are kept."""

_NAMESPACES = "namespaces"

_forms = Forms()


def put_namespace(record: WorkspaceRecord, kinds: KindTable, effects: Effects) -> bool:
    """The namespace that every workspace has; whether there was a form for it. `kinds`: those that it starts with."""
    key = Key(_NAMESPACES, record.cluster, "", "default")
    made = _forms.put(
        (_NAMESPACES, record.builtins),
        partial(_example_of_namespace, kinds),
        key,
        (object_uid(effects.fleet, key, record.origin), clock.rfc3339(record.origin_time)),
    )
    if made is None:
        return False
    effects.changes.objects.append(ObjectChange(ChangeKind.CREATED, made))
    return True


def put_new(record: WorkspaceRecord, parent_cluster: str, said: Manifest, effects: Effects, digest: str = "") -> bool:
    """Both objects of a workspace of which nothing is stored; whether there was a form for each. `said`: what is to be
    its Workspace, by a file or by nobody; `digest`: of that file, if it is known."""
    if not record.served or record.errors or not effects.is_new(record.origin):
        return False
    if record.mounts or settable(said.value["metadata"]):
        return False  # its LogicalCluster says more than others do, or there is none
    if ENTRIES[WORKSPACES].names(said.name) or said.origin.in_keys:
        return False
    given = dump([record.labels, record.initializers, record.terminators])
    cluster = _forms.put(
        (LOGICAL_CLUSTERS, record.type, record.shard, given),
        partial(_example_of_cluster, record),
        cluster_key(record),
        _texts_of_cluster(record, parent_cluster, effects.fleet),
    )
    unnamed = digest or dump({**said.value, "metadata": {**said.value["metadata"], "name": ""}})
    workspace = _forms.put(
        (WORKSPACES, record.type, record.shard, given, said.origin.generator, unnamed),
        partial(_example_of_workspace, record, said),
        workspace_key(record, parent_cluster),
        _texts_of_workspace(record, parent_cluster, said.origin, effects.fleet),
    )
    if cluster is None or workspace is None:
        return False
    effects.changes.objects += (ObjectChange(ChangeKind.CREATED, cluster), ObjectChange(ChangeKind.CREATED, workspace))
    effects.changed = True
    return True


def _texts_of_cluster(record: WorkspaceRecord, parent_cluster: str, fleet: str) -> tuple[str, ...]:
    uid = object_uid(fleet, cluster_key(record), record.origin)
    return uid, clock.rfc3339(record.origin_time), record.path, paths.base(record.path), parent_cluster


def _texts_of_workspace(record: WorkspaceRecord, parent_cluster: str, origin: Origin, fleet: str) -> tuple[str, ...]:
    uid = object_uid(fleet, workspace_key(record, parent_cluster), record.origin)
    return uid, clock.rfc3339(record.origin_time), record.cluster, str(record.origin), origin.path


def _example_of_cluster(like: WorkspaceRecord, nobody: Nobody) -> Example:
    record, effects = _record(like, nobody), Effects.of_nobody(nobody, nobody.path)
    put_cluster(facts_of(record, nobody.parent_cluster), effects, {}, {})
    texts = _texts_of_cluster(record, nobody.parent_cluster, effects.fleet)
    return effects.example(*zip(_CLUSTER, texts, strict=True))


def _example_of_namespace(kinds: KindTable, nobody: Nobody) -> Example | None:
    declared, _ = Renderer(kinds, nobody.cluster, no_line).render(EVERYWHERE)
    if declared is None:
        return None
    effects = Effects.of_nobody(nobody, nobody.path)
    effects.put(declared, None, None, None)
    texts = object_uid(effects.fleet, declared.key, nobody.moment.commit), nobody.moment.rfc3339
    return effects.example(*zip((Kind.UID, Kind.TIME), texts, strict=True))


def _example_of_workspace(like: WorkspaceRecord, said: Manifest, nobody: Nobody) -> Example | None:
    record, effects = _record(like, nobody), Effects.of_nobody(nobody, nobody.parent)
    value: Object = {**said.value, "metadata": {**said.value["metadata"], "name": nobody.name}}
    origin = said.origin._replace(path=nobody.file) if said.origin.path else said.origin
    manifest = replace(said, name=nobody.name, value=value, origin=origin)
    renderer = Renderer(workspace_builtins(), nobody.parent_cluster, no_line)
    found = WorkspaceObjects().render(manifest, record, renderer)
    if found is None:
        return None
    facts = facts_of(record, nobody.parent_cluster)
    put_lasting(found, found.obj, None, effects, facts)
    texts = _texts_of_workspace(record, nobody.parent_cluster, origin, effects.fleet)
    return effects.example(*zip(_WORKSPACE, texts, strict=True))


def _record(like: WorkspaceRecord, nobody: Nobody) -> WorkspaceRecord:
    """Of a workspace that is none, of the same type and on the same Shard."""
    at, time = nobody.moment.commit, nobody.moment.time
    place = nobody.path, nobody.cluster, nobody.parent
    out = WorkspaceRecord(*place, like.type, origin=at, origin_time=time)
    given = {name: getattr(like, name) for name in ("shard", "labels", "initializers", "terminators")}
    return replace(out, **given)
