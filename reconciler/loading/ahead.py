"""What a status commit recorded of workspaces that were past the commit that it names: commits were on their way then.

Called where a fleet is recovered. First all workspaces are brought back at the commit that is named, these too, since
whoever takes something of theirs is still served with what they offered there. What was recorded of them is of a later
commit, so that is no more than a likeness; then each is made anew at its own commit, from what was recorded of it. Who
takes something of theirs hears of it when that commit is followed, as it would have.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace

from apiserver.model import commits, paths
from apiserver.model.commits import CommitRef
from apiserver.registry import tree
from apiserver.registry.tree import FleetRecord, WorkspaceRecord
from apiserver.storage.protocol import Store
from reconciler.layout.compare import touched
from reconciler.layout.errors import BadFile
from reconciler.loading.step import FindRecorded
from reconciler.loading.steps import Stepper
from reconciler.loading.trees import Trees
from reconciler.loading.ways import ANEW
from reconciler.repository.folder import joined
from reconciler.statusbranch import format
from reconciler.statusbranch.recorded import RecordedFleet


class Ahead:
    """`arriving`: see FleetRecord; those that are still there."""

    def __init__(self, recorded: RecordedFleet, trees: Trees) -> None:
        self._recorded, self._trees = recorded, trees
        self.arriving = tuple(c for c in recorded.facts().arriving if trees.repositories.of(c).has(c.id))
        self._complete()
        ahead = recorded.ahead().items()
        self._places = {self._path(folder, at): at for folder, at in ahead if at in self.arriving}

    def _complete(self) -> None:
        """Has each commit's tree say which directories are still whose they were in the commit before: whoever walks it
        alone takes them for a part of what they lie in."""
        for number, commit in enumerate(self.arriving):
            repo, earlier = self._trees.repositories.of(commit), self.arriving[:number]
            before = [each for each in earlier if repo.is_ancestor(each.id, commit.id)]
            with suppress(BadFile):  # it is held as a whole
                touched(self._trees.at(commit), self._trees.at([self._recorded.source, *before][-1]))

    def _path(self, folder: str, at: CommitRef) -> str:
        """Of a workspace. Nothing may be recorded of those that it stands in, so its folder does not tell."""
        tree = self._trees.at(at)
        found = tree.at(joined(tree.folder, format.directory_in_git(folder)))
        return found.path if found is not None else ":".join(folder.split("/")[1:])

    def absent(self, find: FindRecorded) -> frozenset[str]:
        """The workspaces of the named commit that one on its way had taken away: nothing is recorded of them."""
        here, gone = self._trees.at(self._recorded.source), set[str]()
        for commit in self.arriving:
            try:
                gone |= touched(self._trees.apart(commit), here).removed
            except BadFile:
                continue  # it is held as a whole
        places = {path: here.find(path) for path in gone}
        return frozenset(p for p, at in places.items() if find(p, at.directory if at is not None else "") is None)

    def are_held(self, store: Store, record: WorkspaceRecord) -> bool:
        """Whether a workspace is served as it was, for what stands in a later commit than the one that is named."""
        if not (record.errors and record.served and record.path in self._places):
            return False
        return commits.parse(tree.summary(store, record.path).get("held") or "") in self.arriving

    def take(
        self, store: Store, fleet: FleetRecord, stepper: Callable[..., Stepper], among: Collection[str] | None = None
    ) -> None:
        """Makes these workspaces anew where they were. `stepper`: see Making. `among`: no others; None: all."""
        places = self._at(store, among)
        alone = replace(fleet, kept={})
        for commit in self.arriving:
            there = [path for path, at in places.items() if at == commit]
            if there:
                step = stepper(ANEW, alone, commit, recorded=self._recorded)
                step.difference(self._trees.at(commit), there)

    def _at(self, store: Store, among: Collection[str] | None) -> dict[str, CommitRef]:
        """Which are to be made, and where; with what they stand in, where that came with what was on its way, too."""
        places: dict[str, CommitRef] = {}
        for path, at in self._places.items():
            record = tree.workspace_at(store, path)
            if (among is not None and path not in among) or (record is not None and self.are_held(store, record)):
                continue
            places[path] = at
            above = paths.parent(path)
            while above is not None and tree.workspace_at(store, above) is None:
                places.setdefault(above, self._places.get(above) or self._first(above, at))
                above = paths.parent(above)
        return places

    def _first(self, path: str, at: CommitRef) -> CommitRef:
        """The commit in which a workspace came of which nothing is recorded."""
        return next((c for c in self.arriving if self._trees.at(c).find(path) is not None), at)
