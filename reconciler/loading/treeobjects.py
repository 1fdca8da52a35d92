"""The two objects that stand for a workspace: the Workspace in its parent, and its own LogicalCluster.

Called by judge, for good workspaces and for held ones, whose conditions list every error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import orjson

from apiserver.model import conditions, paths
from apiserver.model.commits import NONE
from apiserver.model.keys import Key
from apiserver.model.origins import COMPUTED
from apiserver.model.reserved import settable
from apiserver.registry import mounts
from apiserver.registry.kinds import workspace_builtins
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.protocol import Record
from reconciler.layout.errors import LayoutError
from reconciler.layout.manifest import Manifest
from reconciler.loading.appearing import put_new
from reconciler.loading.case import Case
from reconciler.loading.clusterobject import (
    as_decided,
    cluster_key,
    facts_of,
    marked,
    no_line,
    put_cluster,
    put_lasting,
    workspace_key,
)
from reconciler.loading.effects import Effects
from reconciler.loading.gather import Gathered
from reconciler.loading.render import Renderer
from reconciler.loading.sources import generated
from reconciler.loading.workspaceobject import WorkspaceObjects
from reconciler.plan import computed
from reconciler.plan.runtimestatus import part
from reconciler.plan.turned import WORKSPACE

Object = dict[str, Any]

Look = Callable[[list[Key]], dict[Key, Record]]


class TreeObjects:
    """`record` finds a workspace's record as the current step makes it."""

    def __init__(self, record: Callable[[str], WorkspaceRecord | None]) -> None:
        self._record = record
        self._workspaces = WorkspaceObjects()

    def put(self, case: Case, record: WorkspaceRecord, gathered: Gathered, effects: Effects, look: Look | None) -> None:
        """The Workspace object in the parent, and the LogicalCluster: that of a workspace without a good commit comes
        with the first one, since lists over many workspaces leave it out until then. `look` finds what is stored, None
        where nothing is."""
        parent = self._record(record.parent) if record.parent else None
        bare = _bare_workspace(case.path)
        new = parent.cluster if parent is not None and look is None else ""
        if new and not gathered.adopts and put_new(record, new, gathered.workspace or bare, effects):
            return
        keys = _keys(record, parent)
        stored = look(keys) if look is not None else {}
        # One that is held keeps its last good workspace.yaml too.
        kept = gathered.old_workspace if record.errors and record.served else None
        said, old = kept or gathered.workspace or bare, gathered.old_workspace
        now, before = _said(said), _said(old) if old is not None else {}
        facts = facts_of(record, parent.cluster if parent else "")
        facts = marked(facts, now, before, _standing(record, stored, effects))
        facts = facts._replace(since=_since(facts, keys[-1], stored, effects))
        if parent is not None and record.mounts:
            facts = facts._replace(unavailable=not _is_mounted(workspace_key(record, parent.cluster), stored, effects))
        elif record.served:
            put_cluster(facts, effects, stored, before if old is not None else now)
        if parent is None or (not gathered.complete and case.record is not None and _looks_alike(record, case.record)):
            return
        renderer = Renderer(workspace_builtins(), parent.cluster, no_line)
        # A Workspace that does not pass its own rules is held; what can be said of it is its name and why.
        found = self._workspaces.render(said, record, renderer) or renderer.trusted(bare)
        was = self._workspaces.render(old or gathered.shown_workspace or said, case.record or record, renderer)
        # Its workspace.yaml is the fleet's, where it stands there; one that never was served is said as it appeared.
        said_at = (record.served and effects.said_at) or record.origin if case.sourced.of else NONE
        above = replace(effects, path=record.parent, changed=False, said_at=said_at)
        if gathered.adopts:
            above.former = lambda _: {"metadata": {"uid": gathered.adopts}}
        put_lasting(found, (was or found).obj, stored.get(found.key), above, facts)

    def problems(self, said: Manifest, record: WorkspaceRecord) -> list[LayoutError]:
        """What the rules of a Workspace have against what workspace.yaml says."""
        return self._workspaces.problems(said, record, Renderer(workspace_builtins(), record.parent, no_line))


def _keys(record: WorkspaceRecord, parent: WorkspaceRecord | None) -> list[Key]:
    """Where the two objects stand, last the one that is there first."""
    return [cluster_key(record), *([workspace_key(record, parent.cluster)] if parent is not None else ())]


def _said(workspace: Manifest) -> dict[str, str]:
    return settable(workspace.value["metadata"])


def _standing(record: WorkspaceRecord, stored: Mapping[Key, Record], effects: Effects) -> dict[str, str]:
    """What the LogicalCluster says of those, as it is stored or, at a recovery, recorded."""
    key = cluster_key(record)
    there = stored.get(key)
    return settable((orjson.loads(there.value) if there is not None else effects.known_of(key)).get("metadata") or {})


def _since(
    facts: computed.WorkspaceFacts, first: Key, stored: Mapping[Key, Record], effects: Effects
) -> dict[str, str]:
    """Since when both say what they say, as far as that is computed; `first` is the one that was there first."""
    there: Object | None = orjson.loads(stored[first].value) if first in stored else None
    before: Object = (there or effects.known_of(first)).get("status") or {}
    decided = {each["type"] for each in part(before).get("conditions", ())}
    told = computed.conditions(as_decided(facts, before))
    told = [each for each in told if each["type"] not in decided]
    return {e["type"]: e["lastTransitionTime"] for e in effects.since(WORKSPACE, told, there, facts.origin_time)}


def _is_mounted(key: Key, stored: Mapping[Key, Record], effects: Effects) -> bool:
    """Whether the Workspace at `key` says that what it is a mount of is ready."""
    there = stored.get(key)
    status = (orjson.loads(there.value) if there is not None else effects.known_of(key)).get("status") or {}
    return conditions.is_true(status.get("conditions"), mounts.READY)


def _looks_alike(one: WorkspaceRecord, other: WorkspaceRecord) -> bool:
    """Whether a workspace's object in its parent says the same for both."""
    says = (one.errors, one.served, one.directory, one.elsewhere, one.locked)
    return says == (other.errors, other.served, other.directory, other.elsewhere, other.locked)


def _bare_workspace(path: str) -> Manifest:
    value = {"apiVersion": computed.TENANCY, "kind": "Workspace", "metadata": {"name": paths.base(path)}, "spec": {}}
    return generated([value], COMPUTED)[0]
