"""A commit that puts a workspace's own files back to what they were: what it would be, found before anybody makes it.

Called by `treeplane restore`. Nothing is written but to a repository that is thrown away; what the commit does is
foreseen as for any change (made).
"""

from __future__ import annotations

from dataclasses import dataclass

from apiserver.model import paths
from reconciler.layout.restoring import CannotRestore, RestoredTree, StandingPlace, restored
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.plan.summary import Summary
from reconciler.repository.objects import Repository
from reconciler.review.lineage import Ancestor, Lineage, MovedAway
from reconciler.statusbranch import format
from reconciler.statusbranch.recorded import RecordedFleet

_DIGITS = 10


class AnotherThen(CannotRestore):
    """What stood at the path was another workspace, or none: an earlier one, say."""


@dataclass(frozen=True, slots=True)
class Restoration:
    """`path`: of the workspace; `directory`: where it stands. `was`: where it stood in the commit that is gone back to.
    `comes_back`: it is gone today. `renewed`: it is a new workspace then, since what was there is served no more."""

    path: str
    directory: str
    was: WorkspaceDir
    made: RestoredTree
    comes_back: bool = False
    renewed: bool = False


class Restoring:
    """Of a clone's `head`. `scratch`: a repository that has all objects and may be written to. `recorded`: what the
    status branch says, None where it says nothing."""

    def __init__(self, scratch: Repository, head: str, recorded: RecordedFleet | None) -> None:
        self._repo, self._head, self._recorded = scratch, head, recorded
        self._claims = recorded.facts().claims if recorded is not None else {}
        self.tree = WorkspaceTree(scratch, scratch.commit(head).tree, self._claims)

    def to(self, path: str, commit: str, *, predecessor: bool) -> Restoration:
        """`predecessor`: also to what another workspace was that stood at the path then. Raises CannotRestore."""
        place = self.tree.find(path)
        found = self._ancestor(path, place, commit)
        short = f"{commit:.{_DIGITS}}"
        if found.appeared and found.place is not None and not predecessor:
            text = f"{path} was another workspace in {short}: this one appeared with {found.appeared:.{_DIGITS}}"
            raise AnotherThen(text, "name a later commit; or take that one's files, with --predecessor")
        was = found.place
        if was is None or (was.manifest is None and path != paths.ROOT):
            since = f": it appeared with {found.appeared:.{_DIGITS}}" if found.appeared else ""
            hint = f"name a commit in which it was, as `git log --first-parent -- {self._where(place, path)}` lists"
            raise AnotherThen(f"{path} was not there in {short}{since}", hint)
        directory = place.directory if place is not None else was.directory
        then = self._tree(commit)
        made = restored(self.tree, StandingPlace(path, directory, place), then, was)
        gone = path != paths.ROOT and (place is None or place.manifest is None)
        return Restoration(path, directory, was, made, gone, gone and self._known(path, was) is None)

    def _ancestor(self, path: str, place: WorkspaceDir | None, commit: str) -> Ancestor:
        after, origin = self._repo.first_parents(commit, self._head), self._origin(path, place)
        later = origin if origin and not self._repo.is_ancestor(origin, commit) else ""
        if after is None:  # it is on another branch, or was merged in
            return Ancestor(self._tree(commit).find(path), later)
        try:
            found = Lineage(self._tree, [commit, *after], origin).of(path, place)
            return found._replace(appeared=found.appeared or later)
        except MovedAway as moved:
            text = f"{path} moved to {moved.to} with {moved.commit:.{_DIGITS}}"
            raise CannotRestore(text, f"restore that: treeplane restore {moved.to} --at {commit:.{_DIGITS}}") from moved

    def _origin(self, path: str, place: WorkspaceDir | None) -> str:
        """The commit in which a workspace appeared, "" where that tells nothing: what was before the fleet was loaded
        first is nowhere recorded."""
        known = self._known(path, place) if place is not None else None
        root = self._known(paths.ROOT, self.tree.find(paths.ROOT))
        return known.origin.id if known is not None and root is not None and known.origin != root.origin else ""

    def _known(self, path: str, place: WorkspaceDir | None) -> Summary | None:
        if self._recorded is None or place is None:
            return None
        return self._recorded.summary(format.directory_of(path, place.directory))

    def _tree(self, commit: str) -> WorkspaceTree:
        return self.tree.beside(self._repo.commit(commit).tree)

    def _where(self, place: WorkspaceDir | None, path: str) -> str:
        return place.directory if place is not None else f"{self.tree.top}/{path.replace(':', '/')}"
