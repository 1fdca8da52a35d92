"""What concerns a fleet as a whole: its treeplane.yaml, its record in the store, and what holds a commit for everybody.

Called by loader and firstload.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from apiserver.model.commits import CommitRef
from apiserver.model.redaction import redact
from apiserver.registry import tree
from apiserver.registry.tree import FleetRecord
from apiserver.storage.protocol import Store
from reconciler.layout.errors import BadFile, LayoutError
from reconciler.layout.fleet import FILE, FleetConfig, read_fleet
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.weight import MOST, too_heavy, weigh
from reconciler.loading.admission import FREE, Admission
from reconciler.loading.step import SafetyLimits
from reconciler.loading.trees import Trees
from reconciler.plan import bootstrap, system
from reconciler.plan.deletions import Limits
from reconciler.repository.folder import joined
from reconciler.repository.objects import Repository
from reconciler.repository.statusaddress import OWN, StatusAddress
from reconciler.statusbranch.format import is_apart

_KEPT = 8


def ships() -> str:
    """Digests of what this version of Treeplane ships: content of its own, and what a cluster of Kubernetes starts
    with."""
    return f"{system.digest()} {bootstrap.digest()}"


class Whole:
    """Of one fleet."""

    def __init__(self, store: Store, repo: Repository, trees: Trees, status: str = "") -> None:
        """`status`: see BranchSettings."""
        self._status = status
        self._store, self._repo, self._trees = store, repo, trees
        self._configs: dict[CommitRef, tuple[FleetConfig | None, tuple[LayoutError, ...]]] = {}
        """Of the commits that were asked about last: a load asks about two of them again and again."""

    def config(self, commit: CommitRef) -> tuple[FleetConfig | None, tuple[LayoutError, ...]]:
        """treeplane.yaml and the workspace root of a commit, or why the commit is held as a whole."""
        found = self._configs.get(commit)
        if found is None:
            if len(self._configs) >= _KEPT:
                self._configs.clear()
            found = self._configs[commit] = self._read_config(commit)
        return found

    def _read_config(self, commit: CommitRef) -> tuple[FleetConfig | None, tuple[LayoutError, ...]]:
        here = self._trees.at(commit)
        fault = here.fault()
        errors = [fault] if fault else []
        try:
            config = read_fleet(self._repo, here.tree_id)
        except BadFile as bad:
            errors += bad.errors if fault is None or fault.path != here.folder else ()  # one mistake, one error
        return (None, tuple(errors)) if errors else (config, ())

    def first_config(self, commit: CommitRef) -> tuple[FleetConfig | None, tuple[LayoutError, ...]]:
        """The same of a commit that is the first one, whatever it holds."""
        config, problems = self.config(commit)
        here = self._trees.at(commit)
        root = self._repo.tree_at(here.tree_id, here.root)
        if root is not None and weigh(self._repo, [root], MOST) > MOST:
            return None, (*problems, too_heavy(here.root, MOST))
        return config, problems

    def next_config(self, fleet: FleetRecord, commit: CommitRef) -> tuple[FleetConfig | None, tuple[LayoutError, ...]]:
        """The same of a commit that is to follow what is served."""
        config, problems = self.config(commit)
        if config is not None and config.uid and config.uid != fleet.fleet:
            text = f"metadata.uid is {config.uid}, but this fleet is {fleet.fleet}"
            problems = (LayoutError(self._file(commit), 0, 0, text, "restore it: all identities hang on it"),)
        served, _ = self.config(fleet.commit)
        if config is not None and served is not None:
            moved = _moved_status(config.status_place, served.status_place, self._status, self._file(commit))
            problems = (*problems, *moved)
        return (None, problems) if problems else (config, ())

    def _file(self, commit: CommitRef) -> str:
        return joined(self._trees.at(commit).folder, FILE)

    def limits(self, fleet: FleetRecord) -> SafetyLimits:
        """Of what may be deleted, as the served commit says."""
        config = self.config(fleet.commit)[0] or FleetConfig("")
        objects = Limits(config.max_deleted_objects, config.max_deleted_share)
        return SafetyLimits(objects, config.max_deleted_workspaces, fleet.commit)

    def claims(self, here: WorkspaceTree, kept: Iterable[str]) -> dict[str, str]:
        """See FleetRecord. What comes back to the directories of workspaces that stay is theirs, too."""
        found = {d: path for d, path in here.claims.items() if here.has(d)}
        for top in kept:
            records = (tree.workspace_at(self._store, path) for path in (top, *tree.below(self._store, top)))
            there = (record for record in records if record is not None and not is_apart(record.directory))
            found |= {record.directory: record.path for record in there if record.directory}
        return found

    def arrive(self, fleet: FleetRecord, commit: CommitRef, admission: Admission = FREE) -> FleetRecord:
        """A commit is about to be written, workspace by workspace: whoever is started after a crash has to know, and
        what was found of who stands for it, since what it brings may decide about that. Nobody waits for this: it is on
        disk before what is written after it."""
        arriving = replace(fleet, arriving=tuple(dict.fromkeys((*fleet.arriving, commit))))
        if admission is not FREE:
            arriving = replace(arriving, admitted={**fleet.admitted, str(commit): admission.as_json()})
        self._store.write(tree.put_fleet(arriving))
        return arriving

    def hold(self, fleet: FleetRecord, problems: Iterable[LayoutError]) -> None:
        """Nothing of a commit is taken, and the fleet says why."""
        self.note(replace(fleet, error="; ".join(map(str, problems))))

    def note(self, fleet: FleetRecord) -> None:
        if fleet != tree.fleet(self._store):
            self._store.write(tree.put_fleet(fleet)).result()
        self._trees.stand(fleet)


def _moved_status(place: StatusAddress, served: StatusAddress, may: str, file: str) -> list[LayoutError]:
    """What is wrong with a commit that has the status branch somewhere else. `may`: see BranchSettings.status; `file`:
    what says it."""
    hint = "restore it: what was recorded there would count as lost"
    said = []
    if place.branch != served.branch:
        said.append(f"spec.statusBranch is {place.branch}, but this fleet's status is on {served.branch}")
    if place.repository != served.repository and may != (place.repository or OWN):
        if place.branch == served.branch:
            hint = f"restore it; or, to move it: treeplane up --status-repository {place.repository or OWN}"
        named = redact(place.repository) or "not there"
        where = f"in {redact(served.repository)}" if served.repository else "in the fleet's own repository"
        said.append(f"spec.status.repository is {named}, but this fleet's status is {where}")
    return [LayoutError(file, 0, 0, text, hint) for text in said]
