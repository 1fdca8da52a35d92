"""The LogicalCluster that a workspace has, and where it and its Workspace stand in the store.

Called by treeobjects, and by appearing for the form of those that come.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from apiserver.model import clock, commits, paths
from apiserver.model.keys import Key
from apiserver.model.origins import COMPUTED
from apiserver.model.reserved import is_inactive
from apiserver.model.storagenames import LOGICAL_CLUSTERS, WORKSPACES
from apiserver.registry import pins
from apiserver.registry.kinds import workspace_builtins
from apiserver.registry.lifecycles import INITIALIZER, TERMINATOR, with_labels
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.protocol import Record
from reconciler.layout.manifest import Manifest
from reconciler.layout.sourceref import SourceRef
from reconciler.loading.effects import Effects
from reconciler.loading.render import DeclaredObject, Renderer
from reconciler.loading.sources import generated
from reconciler.plan import computed, runtimestatus
from reconciler.plan.residue import restore
from reconciler.plan.runtimestatus import overlaid

Object = dict[str, Any]


def cluster_key(record: WorkspaceRecord) -> Key:
    return Key(LOGICAL_CLUSTERS, record.cluster, "", "cluster")


def workspace_key(record: WorkspaceRecord, parent_cluster: str) -> Key:
    return Key(WORKSPACES, parent_cluster, "", paths.base(record.path))


def marked(
    facts: computed.WorkspaceFacts, said: Mapping[str, str], before: Mapping[str, str], standing: Mapping[str, str]
) -> computed.WorkspaceFacts:
    """With what workspace.yaml says for the LogicalCluster. `before`: what it said until now; `standing`: what the
    LogicalCluster says, which may have been said through the API."""
    return facts._replace(said=tuple(said.items()), inactive=is_inactive(effective(said, before, standing)))


def effective(said: Mapping[str, str], before: Mapping[str, str], standing: Mapping[str, str]) -> dict[str, str]:
    """What counts of those, as `marked` has them."""
    return {**{key: value for key, value in standing.items() if key not in before}, **said}


def put_cluster(
    facts: computed.WorkspaceFacts, effects: Effects, stored: Mapping[Key, Record], before: Mapping[str, str]
) -> None:
    """`before`: what workspace.yaml said for it until now."""
    [manifest] = generated([computed.logical_cluster(facts)], COMPUTED)
    declared = Renderer(workspace_builtins(), facts.cluster, no_line).trusted(manifest)
    there, said = stored.get(declared.key), tuple(before.items())
    old = declared.obj if said == facts.said else computed.logical_cluster(facts._replace(said=said))
    put_lasting(declared, old, there, effects, facts)


def put_lasting(
    declared: DeclaredObject,
    old: Object | None,
    stored: Record | None,
    effects: Effects,
    facts: computed.WorkspaceFacts,
) -> None:
    """Writes one of the two, with what runtime decided of it: as it is stored, or, at a recovery, recorded."""
    known = effects.known_of(declared.key) if stored is None else orjson.loads(stored.value)
    before = known.get("status") or {}
    if not facts.sourced:
        before = runtimestatus.without(before, computed.OF_SOURCES)
    status = overlaid(computed.status(as_decided(facts, before)), before)
    if stored is None and known:
        restore(declared.obj, known)
    metadata = declared.obj["metadata"]
    labels = with_labels(metadata.get("labels") or {}, status)
    declared = declared._replace(obj={**declared.obj, "metadata": {**metadata, "labels": labels}})
    effects.put(declared, old, stored, status)


def as_decided(facts: computed.WorkspaceFacts, before: Object) -> computed.WorkspaceFacts:
    """With what is still waited for. `before`: the status that is stored or recorded."""
    return facts._replace(
        initializers=tuple(before.get(INITIALIZER.field, facts.initializers)),
        terminators=tuple(before.get(TERMINATOR.field, facts.terminators)),
    )


def facts_of(record: WorkspaceRecord, parent_cluster: str) -> computed.WorkspaceFacts:
    """`parent_cluster`: "" for root."""
    where, _, name = record.type.rpartition(":")
    return computed.WorkspaceFacts(
        path=record.path,
        cluster=record.cluster,
        type_name=name,
        type_path=where,
        origin_time=clock.rfc3339(record.origin_time),
        problems=tuple(record.errors),
        served=record.served,
        parent_cluster=parent_cluster,
        shard=record.shard,
        initializers=tuple(record.initializers),
        terminators=tuple(record.terminators),
        pinned=pins.told(record.pin) if record.pin else "",
        source=_source(record.source) if record.source else "",
        sourced=bool(record.source or record.follows),
        locked=tuple(record.locked),
    )


def _source(source: Mapping[str, str]) -> str:
    """A record's source in words."""
    ref, commit = SourceRef.kept(source), commits.parse(source["commit"])
    return f"{commit.id:.10} of {ref}" if commit else str(ref)


def no_line(manifest: Manifest, _: str) -> int:
    """The line of a field in what no file says."""
    return manifest.line
