"""The LogicalCluster that a workspace has, and where it and its Workspace stand in the store.

Called by treeobjects, and by appearing for the form of those that come.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from apiserver.model import clock, conditions, paths
from apiserver.model.keys import Key
from apiserver.model.origins import COMPUTED
from apiserver.registry.kinds import workspace_builtins
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.protocol import Record
from reconciler.layout.manifest import Manifest
from reconciler.loading.effects import Effects
from reconciler.loading.moment import Moment
from reconciler.loading.render import Renderer
from reconciler.loading.sources import generated
from reconciler.plan import computed

Object = dict[str, Any]


def cluster_key(record: WorkspaceRecord) -> Key:
    return Key(computed.LOGICAL_CLUSTERS, record.cluster, "", "cluster")


def workspace_key(record: WorkspaceRecord, parent_cluster: str) -> Key:
    return Key(computed.WORKSPACES, parent_cluster, "", paths.base(record.path))


def put_cluster(facts: computed.WorkspaceFacts, effects: Effects, stored: Mapping[Key, Record]) -> None:
    [manifest] = generated([computed.logical_cluster(facts)], COMPUTED)
    declared = Renderer(workspace_builtins(), facts.cluster, no_line).trusted(manifest)
    there = stored.get(declared.key)
    effects.put(declared, declared.obj, there, _with_fleet(computed.status(facts), there))


def facts_of(record: WorkspaceRecord, parent_cluster: str, since: Moment) -> computed.WorkspaceFacts:
    """`since`: when it was first held back, if it is. `parent_cluster`: "" for root."""
    where, _, name = record.type.rpartition(":")
    return computed.WorkspaceFacts(
        path=record.path,
        cluster=record.cluster,
        type_name=name,
        type_path=where,
        origin_time=clock.rfc3339(record.origin_time),
        commit_time=since.rfc3339,
        problems=tuple(record.errors),
        served=record.served,
        parent_cluster=parent_cluster,
    )


def no_line(manifest: Manifest, _: str) -> int:
    """The line of a field in what no file says."""
    return manifest.line


def _with_fleet(status: Object, stored: Record | None) -> Object:
    """With what is said of the fleet, which follows from no commit."""
    there = (orjson.loads(stored.value).get("status") or {}) if stored is not None else {}
    told = conditions.get(there.get("conditions"), computed.FLEET_FOLLOWED)
    return status if told is None else {**status, "conditions": conditions.merged(status["conditions"], [told])}
