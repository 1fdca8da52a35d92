"""A copy on a sync target, back to the file, line and commit that declare it, and the Placement that has it there.

Called by `treeplane trace`. Where it is, since when and by which rule the status branch says; what it is to say, the
files of the commit that its workspace is served at.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from apiserver.model import commits, marks
from apiserver.model.commits import CommitRef
from reconciler.history.copies import GivenCopy, differences, identity
from reconciler.history.find import declared, object_in, place_of, usual
from reconciler.history.fleet import FleetHistory
from reconciler.history.kinds import AskedObjects, DeclaredId, resource_of
from reconciler.history.people import People
from reconciler.history.recorded import DecidedPlacement, RecordedWorkspace, StatusRecords
from reconciler.history.result import NotFound, ObjectTrace, moment
from reconciler.layout.manifest import Manifest
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.review.revisions import BadRange
from reconciler.statusbranch.clones import fetching_for

_NO_STATUS = "this clone has no status branch, which knows what is served and where it runs"


class _Served(NamedTuple):
    """A workspace as it is served: where its own content is read."""

    of: RecordedWorkspace
    tree: WorkspaceTree
    place: WorkspaceDir
    commit: CommitRef


class Tracing:
    """Of one history. Raises BadRange where the clone has no status branch."""

    def __init__(self, history: FleetHistory, people: People) -> None:
        if history.recorded is None:
            raise BadRange(_NO_STATUS, f"fetch it: {fetching_for(history.repo, history.head)}")
        self._history, self._people = history, people
        self._records = StatusRecords(history, history.recorded)

    def asked(self, workspace: str, asked: AskedObjects, target: str) -> ObjectTrace:
        """Of an object that is named. `target`: `root:infra:west`, or `west` where that is the only one. Raises
        NotFound and BadRange."""
        served = self._served(workspace)
        commit = self._history.repo.commit(served.commit.id)
        found = object_in(self._history, commit, served.place, asked).manifest
        namespace = found.namespace or "default"
        chosen = _on(
            self._records.selecting(served.of, namespace), target, f"namespace {namespace} of {served.of.path}"
        )
        return self._traced(served, found, chosen, chosen[0].target)

    def given(self, copy: GivenCopy, workspace: str = "") -> ObjectTrace:
        """Of an object from a cluster. `workspace`: whose it is, where that is known. Raises NotFound."""
        if copy.file:
            return self._of_our_api(copy)
        if not copy.target:
            text = f"{copy} is not from here: it has no label of Treeplane's, or one that is another namespace's"
            raise NotFound(text, "what Treeplane puts on a cluster carries the label internal.workload.kcp.io/cluster")
        of, namespace = self._home(copy, workspace)
        served = self._served(of.path)
        found = declared(self._history, served.tree, served.place, identity(copy, namespace))
        if found is None:
            text = f"{copy} is in a namespace of {of.path}, but no file of {served.commit:.10} declares it"
            raise NotFound(text, f"what it is there is {copy.kind} {namespace}/{copy.name}")
        chosen = [each for each in self._records.selecting(of, namespace) if each.key == copy.target]
        target = next((each.target for each in chosen), f"the sync target with the key {copy.target}")
        traced = self._traced(served, found, chosen, target)
        if not chosen:
            note = "no Placement has its namespace there any more: what is there may linger"
            traced = replace(traced, notes=(*traced.notes, note))
        return self._beside(traced, found, copy)

    def _of_our_api(self, copy: GivenCopy) -> ObjectTrace:
        """An object as a workspace's API shows it, which is no copy."""
        recorded = self._history.recorded
        assert recorded is not None, "else there is no Tracing"
        tree = self._history.tree(self._history.repo.commit(recorded.source.id).tree)
        place = tree.owner(copy.file)
        if place is None:
            raise NotFound(f"{copy} says that {copy.file} declares it, which is in no workspace that is served")
        served = self._served(place.path)
        cluster = str((copy.value["metadata"].get("annotations") or {}).get(marks.CLUSTER, ""))
        found = declared(self._history, served.tree, served.place, identity(copy, copy.namespace))
        if found is None or (cluster and cluster != served.of.cluster):
            raise NotFound(f"{copy} is not from here: {copy.file} of {served.commit:.10} does not declare it")
        return self._beside(self._traced(served, found, [], ""), found, copy)

    def _beside(self, traced: ObjectTrace, manifest: Manifest, copy: GivenCopy) -> ObjectTrace:
        found = differences(manifest, copy)
        notes = list(traced.notes)
        if found is None:
            notes.append(f"it is {copy.value.get('apiVersion')} there, and cannot be compared with its file")
        if copy.inventory is not None and copy.inventory.commit:
            notes.append(f"the cluster says that it was applied from {copy.inventory.commit:.10} or later")
        return replace(traced, differs=tuple(found) if found is not None else None, notes=tuple(notes))

    # -- where it is from

    def _home(self, copy: GivenCopy, workspace: str) -> tuple[RecordedWorkspace, str]:
        """The workspace and the namespace of which a cluster's namespace is a copy."""
        said = workspace or (copy.inventory.workspace if copy.inventory is not None else "")
        known = self._records.workspace(said) if said else None
        for each in [known] if known is not None else self._records.workspaces():
            namespace = self._records.namespace(each, copy.target, copy.namespace)
            if namespace:
                return each, namespace
        text = f"{copy} is not from here: no workspace has a namespace that is {copy.namespace} on its sync target"
        raise NotFound(text, "fetch, if it is new: git fetch origin; or it is another fleet's")

    def _served(self, path: str) -> _Served:
        of = self._records.workspace(path)
        if of is None:
            tree = self._history.tree(self._history.repo.commit(self._history.head).tree)
            place_of(tree, path)  # which tells the nearest names, where there is none
            raise NotFound(f"{path} is not on the status branch yet", "fetch it: git fetch origin")
        history, commit = self._history, self._records.served(of)
        if commit.repository or not history.repo.has(commit.id):
            raise RepositoryUnreadable(f"{commit:.10}, at which {path} is served, is not here", "git fetch origin")
        tree = history.tree(history.repo.commit(commit.id).tree)
        place = tree.find(path, usual(tree, path))
        if place is None:
            raise NotFound(f"{commit:.10}, at which {path} is served, does not have it in a directory")
        source = history.sources.source(tree, place)
        if source is not None:
            text = f"the content of {path} comes from {source}, of which nothing is in this clone"
            raise NotFound(
                text, "ask there: treeplane.dev/source-path and source-commit of the object name file and commit"
            )
        pin = history.sources.pin(tree, place) if not of.summary.over else None
        pinned = history.sources.pinned(tree, place, pin.commit) if pin is not None else None
        if pin is None or pinned is None:
            return _Served(of, tree, place, commit)
        return _Served(of, pinned.tree, pinned.directory, CommitRef("", pin.commit))

    def _traced(self, served: _Served, manifest: Manifest, chosen: list[DecidedPlacement], target: str) -> ObjectTrace:
        key = DeclaredId.of(manifest)
        resource = resource_of(manifest.gvk) or key.resources[0]
        told = key.told(served.of.path)
        namespace = told.namespace or key.namespace
        residue = self._records.residue(served.of, resource, namespace, key.name)
        commit = self._content_commit(served, residue)
        [person] = self._people.told([commit.id])
        status, older = self._records.first_with(commit.id)
        at = moment(self._history.repo.commit(status).time) if status else ""
        notes = ["the status branch's history begins after it was first served"] if older else []
        return ObjectTrace(
            told,
            target,
            manifest.path,
            manifest.line,
            person,
            self._people.writers(person).of(served.of.path, key),
            served.commit.id,
            status,
            at,
            tuple(each.told for each in chosen),
            _observed(residue),
            None,
            tuple(notes),
        )

    def _content_commit(self, served: _Served, residue: dict[str, object]) -> CommitRef:
        metadata = residue.get("metadata")
        said = (metadata.get("annotations") or {}) if isinstance(metadata, dict) else {}
        try:
            found = commits.parse(str(said.get(marks.SOURCE_COMMIT, ""))) or served.of.summary.origin
        except ValueError as error:
            raise RepositoryUnreadable(f"the status branch cannot be read: {error}") from error
        if found.repository or not self._history.repo.has(found.id):
            raise RepositoryUnreadable(f"{found:.10}, which the status branch names, is not here", "git fetch origin")
        return found


def _on(placements: list[DecidedPlacement], target: str, what: str) -> list[DecidedPlacement]:
    named = [each for each in placements if each.target == target or each.target.rpartition(":")[2] == target]
    targets = sorted({each.target for each in named})
    if len(targets) > 1 and target not in targets:
        raise BadRange(f"{target} is several sync targets: {', '.join(targets)}", "name it in full")
    if not named:
        others = ", ".join(sorted({each.target for each in placements if each.target}))
        text = f"{what} does not run on {target}, as the status branch has it"
        raise NotFound(text, f"it runs on {others}" if others else "no Placement has it run anywhere")
    return [each for each in named if each.target == target] or named


def _observed(residue: dict[str, object]) -> bool | None:
    status, metadata = residue.get("status"), residue.get("metadata")
    seen = status.get("observedGeneration") if isinstance(status, dict) else None
    if not isinstance(seen, int) or not isinstance(metadata, dict):
        return None
    return seen >= int(metadata.get("generation", 1))
