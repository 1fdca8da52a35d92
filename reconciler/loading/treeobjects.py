"""The two objects that stand for a workspace: the Workspace in its parent, and its own LogicalCluster.

Called by judge, for good workspaces and for held ones, whose conditions list every error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson

from apiserver.model import clock, conditions, paths
from apiserver.model.keys import Key
from apiserver.model.origins import COMPUTED
from apiserver.registry.kinds import workspace_builtins
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.protocol import Record
from reconciler.layout.manifest import Manifest
from reconciler.loading.case import Case
from reconciler.loading.effects import Effects
from reconciler.loading.gather import Gathered
from reconciler.loading.moment import Moment, Moments
from reconciler.loading.render import Renderer
from reconciler.loading.sources import generated
from reconciler.loading.workspaceobject import WorkspaceObjects
from reconciler.plan import computed

Object = dict[str, Any]


class TreeObjects:
    """`record` finds a workspace's record as the current step makes it, `stored` what the store holds of some keys."""

    def __init__(
        self,
        moments: Moments,
        record: Callable[[str], WorkspaceRecord | None],
        stored: Callable[[list[Key]], dict[Key, Record]],
    ) -> None:
        self._moments = moments
        self._record = record
        self._stored = stored
        self._workspaces = WorkspaceObjects()

    def put(self, case: Case, record: WorkspaceRecord, gathered: Gathered, effects: Effects) -> None:
        """The Workspace object in the parent, and the LogicalCluster: that of a workspace without a good commit comes
        with the first one, since lists over many workspaces leave it out until then."""
        since = self._moments.at(effects.summary.held or case.moment.commit, case.moment.time)
        parent = self._record(record.parent) if record.parent else None
        facts = _facts(record, parent, since)
        status = computed.status(facts)
        stored = {} if case.appears else self._stored(_keys(record, parent))
        if record.served:
            [manifest] = generated([computed.logical_cluster(facts)], COMPUTED)
            declared = Renderer(workspace_builtins(), record.cluster, _no_line).trusted(manifest)
            there = stored.get(declared.key)
            effects.put(declared, declared.obj, there, _with_fleet(status, there))
        if parent is None or (not gathered.complete and case.record is not None and _looks_alike(record, case.record)):
            return
        # One that is held keeps its last good workspace.yaml too.
        kept = gathered.old_workspace if record.errors and record.served else None
        renderer = Renderer(workspace_builtins(), parent.cluster, _no_line)
        # A Workspace that does not pass its own rules is held; what can be said of it is its name and why.
        said = kept or gathered.workspace or _bare_workspace(case.path)
        found = self._workspaces.render(said, record, renderer) or renderer.trusted(_bare_workspace(case.path))
        before = self._workspaces.render(gathered.old_workspace, record, renderer) if gathered.old_workspace else None
        above = replace(effects, path=record.parent, changed=False)
        above.put(found, (before or found).obj, stored.get(found.key), status)


def _with_fleet(status: Object, stored: Record | None) -> Object:
    """With what is said of the fleet, which follows from no commit."""
    there = (orjson.loads(stored.value).get("status") or {}) if stored is not None else {}
    told = conditions.get(there.get("conditions"), computed.FLEET_FOLLOWED)
    return status if told is None else {**status, "conditions": conditions.merged(status["conditions"], [told])}


def _keys(record: WorkspaceRecord, parent: WorkspaceRecord | None) -> list[Key]:
    """Where the two objects stand."""
    found = [Key(computed.LOGICAL_CLUSTERS, record.cluster, "", "cluster")]
    if parent is not None:
        found.append(Key(computed.WORKSPACES, parent.cluster, "", paths.base(record.path)))
    return found


def _looks_alike(one: WorkspaceRecord, other: WorkspaceRecord) -> bool:
    """Whether a workspace's object in its parent says the same for both."""
    return (one.errors, one.served, one.directory) == (other.errors, other.served, other.directory)


def _no_line(manifest: Manifest, _: str) -> int:
    return manifest.line


def _facts(record: WorkspaceRecord, parent: WorkspaceRecord | None, since: Moment) -> computed.WorkspaceFacts:
    """`since`: when it was first held back, if it is."""
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
        parent_cluster=parent.cluster if parent else "",
    )


def _bare_workspace(path: str) -> Manifest:
    value = {"apiVersion": computed.TENANCY, "kind": "Workspace", "metadata": {"name": paths.base(path)}, "spec": {}}
    return generated([value], COMPUTED)[0]
