"""Workspaces that leave, brought back at a recovery: all that is left of them stands on the status branch.

Called where a fleet is recovered, when all others are there. Git has no file of theirs any more, or those of another
workspace.
"""

from __future__ import annotations

from collections.abc import Collection

from apiserver.model import paths
from apiserver.model.commits import NONE
from apiserver.model.identity import logical_cluster_name
from apiserver.model.keys import Key
from apiserver.model.kinds import kind_of
from apiserver.model.storagenames import WORKSPACES
from apiserver.registry import tree
from apiserver.registry.kinds import builtins_of
from apiserver.registry.shards import USUAL
from apiserver.registry.tree import USUAL_TYPE, FleetRecord, WorkspaceRecord
from apiserver.storage.protocol import Store
from reconciler.loading.departure import restore
from reconciler.loading.leaving import LeftBehind, Object, reading
from reconciler.loading.moment import Moments
from reconciler.plan.residue import restored_ending
from reconciler.plan.summary import Summary
from reconciler.statusbranch import format
from reconciler.statusbranch.recorded import RecordedFleet


class Returning:
    """Of what was recorded of one fleet."""

    def __init__(self, store: Store, fleet: FleetRecord, recorded: RecordedFleet, moments: Moments) -> None:
        self._store, self._fleet, self._recorded, self._moments = store, fleet, recorded, moments

    def take(self, among: Collection[str] | None = None) -> None:
        """Puts them back, parents before children. `among`: no others; None: all."""
        directories, leaving = self._recorded.facts().leaving, self._recorded.leaving()
        for path in sorted(leaving, key=paths.depth):
            if among is None or path in among:
                record = self._record(path, directories[path], leaving[path])
                folder = format.directory_of(path, record.directory)
                back = restore(record, self._objects(record, folder), leaving[path].asked)
                self._store.write(*back.ops()).result()

    def _record(self, path: str, directory: str, summary: Summary) -> WorkspaceRecord:
        origin = summary.origin
        return WorkspaceRecord(
            path=path,
            cluster=logical_cluster_name(self._fleet.fleet, summary.first or path, origin),
            parent=paths.parent(path) or "",
            type=summary.type or USUAL_TYPE,
            commit=summary.commit,
            head=self._fleet.commit,
            origin=origin,
            origin_time=summary.appeared or self._moments.at(origin, 0).time,
            directory=directory,
            errors=summary.errors,
            judged=summary.held if summary.errors else NONE,
            leaves=True,
            terminators=summary.terminators,
            shard=summary.shard or USUAL,
            **summary.brought,
        )

    def _objects(self, record: WorkspaceRecord, folder: str) -> dict[Key, Object]:
        endings = [*self._recorded.endings(folder)]
        own = [obj for obj in endings if kind_of(obj)[2] == "Workspace"]
        inside = LeftBehind([o for o in endings if o not in own], record.cluster, record.path, reading(self._store))
        found = {
            key: restored_ending(obj, record.cluster)
            for key, obj in inside.objects(builtins_of(record.builtins, record.path)).items()
        }
        parent = tree.workspace_at(self._store, record.parent)
        if parent is not None:
            for obj in own:
                key = Key(WORKSPACES, parent.cluster, "", obj["metadata"]["name"])
                found[key] = restored_ending(obj, parent.cluster)
        return found
