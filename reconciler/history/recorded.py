"""What the status branch says of a workspace as it is served: where its namespaces run, by which Placement, since when.

Called by trace. Read from the folder of that workspace alone, but for a namespace of a sync target of which nothing
says whose it is: then from the folders of all workspaces that have Placements.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from apiserver.model import conditions, marks
from apiserver.model.commits import CommitRef
from apiserver.model.identity import (
    downstream_namespace,
    logical_cluster_name,
    namespace_locator,
    object_uid,
    sync_target_key,
)
from apiserver.model.keys import Key
from apiserver.model.storagenames import SYNC_TARGETS
from reconciler.controllers.placements import PLACEMENTS
from reconciler.history.find import usual
from reconciler.history.fleet import FleetHistory
from reconciler.history.result import TracedPlacement
from reconciler.plan import placement as plan
from reconciler.plan.summary import Summary
from reconciler.repository.chain import CONTINUES
from reconciler.statusbranch import format
from reconciler.statusbranch.chronicle import status_commits
from reconciler.statusbranch.recorded import RecordedFleet

Object = dict[str, Any]

_NAMESPACES = "namespaces"
_SCHEDULED = "NamespaceScheduled"


class RecordedWorkspace(NamedTuple):
    """`folder`: of the status branch."""

    path: str
    folder: str
    summary: Summary
    cluster: str


class DecidedPlacement(NamedTuple):
    """A Placement with its decision. `target`: `path:name`; `key`: the sync target's."""

    name: str
    key: str
    target: str
    told: TracedPlacement


class StatusRecords:
    """Of the newest status commit that a clone has."""

    def __init__(self, history: FleetHistory, recorded: RecordedFleet) -> None:
        self._history, self._recorded = history, recorded
        self._fleet = recorded.facts().id
        self._source = history.tree(history.repo.commit(recorded.source.id).tree)

    def workspace(self, path: str) -> RecordedWorkspace | None:
        """None where nothing is recorded of it."""
        place = self._source.find(path, usual(self._source, path))
        folder = format.directory_of(path, place.directory if place is not None else "")
        summary = self._recorded.summary(folder)
        return self._made(path, folder, summary) if summary is not None else None

    def workspaces(self) -> Iterator[RecordedWorkspace]:
        """Those that have Placements."""
        for path, folder in self._recorded.folders():
            if any(True for _ in self._recorded.residues(folder, PLACEMENTS)):
                summary = self._recorded.summary(folder)
                if summary is not None:
                    yield self._made(path, folder, summary)

    def served(self, of: RecordedWorkspace) -> CommitRef:
        """The commit that it is served at."""
        return of.summary.served or of.summary.at or self._recorded.source

    def residue(self, of: RecordedWorkspace, resource: str, namespace: str, name: str) -> Object:
        return self._recorded.residue_reader(of.folder)(Key(resource, of.cluster, namespace, name)) or {}

    def placements(self, of: RecordedWorkspace) -> Iterator[DecidedPlacement]:
        for found in self._recorded.residues(of.folder, PLACEMENTS):
            key, _ = plan.recorded(found)
            status = found.get("status") or {}
            rule, synced = (conditions.get(status.get("conditions"), kind) or {} for kind in ("Scheduled", "Synced"))
            told = TracedPlacement(
                str(found["metadata"].get("name", "")),
                str(rule.get("message", "")),
                str(rule.get("lastTransitionTime", "")),
                str(synced.get("status", "")),
                str(synced.get("lastTransitionTime", "")),
                str(synced.get("message", "")),
            )
            yield DecidedPlacement(told.name, key, plan.recorded_target(found), told)

    def selecting(self, of: RecordedWorkspace, namespace: str) -> list[DecidedPlacement]:
        """The Placements that a namespace has, as its condition names them."""
        status = self.residue(of, _NAMESPACES, "", namespace).get("status") or {}
        said = conditions.get(status.get("conditions"), _SCHEDULED) or {}
        text = f"; {said.get('message', '')}"
        return [each for each in self.placements(of) if f"; Placement {each.name} " in text]

    def runs_on(self, of: RecordedWorkspace, namespace: str) -> frozenset[str]:
        """Keys of the sync targets that have copies of a namespace, or may have."""
        return _runs_on(self.residue(of, _NAMESPACES, "", namespace))

    def namespace(self, of: RecordedWorkspace, key: str, downstream: str) -> str:
        """Of which of a workspace's namespaces a sync target (by its key) has the copy under that name; "" of none."""
        target = next((each.target for each in self.placements(of) if each.key == key and each.target), "")
        path, _, name = target.rpartition(":")
        home = self.workspace(path) if path else None
        if home is None or sync_target_key(home.cluster, name) != key:
            return ""
        said = self.residue(home, SYNC_TARGETS, "", name).get("metadata") or {}
        made = object_uid(self._fleet, Key(SYNC_TARGETS, home.cluster, "", name), home.summary.origin)
        uid = str(said.get("uid") or made)
        for found in self._recorded.residues(of.folder, _NAMESPACES):
            namespace = str(found["metadata"].get("name", ""))
            locator = namespace_locator(home.cluster, name, uid, of.cluster, namespace)
            if key in _runs_on(found) and downstream_namespace(locator) == downstream:
                return namespace
        return ""

    def first_with(self, commit: str) -> tuple[str, bool]:
        """The first status commit that was about this commit or a later one; "" where none is. Whether there were
        earlier ones, of which nothing is left."""
        repo, head = self._history.repo, self._recorded.source.id
        later = repo.first_parents(commit, head)
        if later is None:
            return "", False
        counts, found = {commit, *later}, ""
        for status in status_commits(repo, self._recorded.commit.id):
            if status.parents[-1] not in counts:
                return found, False
            found = status.id
        return found, bool(found) and CONTINUES in repo.trailers(found)

    def _made(self, path: str, folder: str, summary: Summary) -> RecordedWorkspace:
        cluster = logical_cluster_name(self._fleet, summary.first or path, summary.origin)
        return RecordedWorkspace(path, folder, summary, cluster)


def _runs_on(namespace: Object) -> frozenset[str]:
    metadata = namespace.get("metadata") or {}
    said = (metadata.get("annotations") or {}).get(marks.RUNS_ON, "")
    return frozenset(filter(None, str(said).split(",")))
