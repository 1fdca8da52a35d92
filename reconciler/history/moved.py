"""Which workspaces a commit has in another directory than the one before, by what files say.

Called by follow and log. By the rules that a load goes by (loading/moves): a directory that appears and states the UID
of a workspace that goes with the same commit is that workspace, and so is one that appears where such a workspace first
stood and is like it. What stands on no server knows no UIDs but those that files state: of one that moves for the first
time its files tell which it is, and of several that are alike the UID that follows from where each appeared.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from apiserver.model import paths
from apiserver.model.commits import CommitRef, own
from apiserver.model.identity import logical_cluster_name, object_uid
from apiserver.model.keys import Key
from apiserver.model.storagenames import WORKSPACES
from reconciler.history.fleet import FleetHistory
from reconciler.history.watched import Watched
from reconciler.layout.compare import Touched, touched
from reconciler.layout.errors import BadFile
from reconciler.layout.level import WORKSPACE_FILES
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.repository.objects import CommitInfo

_ALIKE = 0.5
"""Of the files of a workspace, how many are found again."""


class MovedWorkspace(NamedTuple):
    """The uppermost of those that move: before and after."""

    old: WorkspaceDir
    new: WorkspaceDir


class WorkspaceBirth(NamedTuple):
    """Where a workspace appeared: a commit, and the path that it had."""

    commit: str
    path: str


def nowhere_else(_: str) -> Collection[str]:
    """For compare: that a path stands in one directory alone is taken for granted, since all of a fleet would have to
    be searched for another."""
    return ("",)


def differing(new: WorkspaceTree, old: WorkspaceTree) -> Touched | None:
    """Which workspaces differ; None where one of the trees cannot be served, or more comes than anybody walks."""
    try:
        return touched(new, old, nowhere_else)
    except BadFile:
        return None


class MoveHistory:
    """Of one history."""

    def __init__(self, history: FleetHistory) -> None:
        self._history = history

    def between(self, commit: CommitInfo, before: CommitInfo, found: Touched | None = None) -> list[MovedWorkspace]:
        """`found`: what differs between them, where that is known. Cost follows what appears and goes."""
        new, old = self._history.tree(commit.tree), self._history.tree(before.tree)
        found = found if found is not None else differing(new, old)
        if found is None:
            return []
        moved = [*_regrouped(found)]
        if not found.appeared or not found.removed:
            return moved
        gone = [place for path in _by_depth(found.removed) if (place := found.left.get(path)) is not None]
        for path in _by_depth(found.appeared):
            place = found.places.get(path)
            if place is None or any(_within(place.directory, each.new.directory) for each in moved):
                continue
            free = [each for each in gone if not any(_within(each.directory, m.old.directory) for m in moved)]
            same = self._same(place, free, (new, old), before)
            if same is not None:
                moved.append(MovedWorkspace(same, place))
        return moved

    def before(self, place: WorkspaceDir, commit: CommitInfo, before: CommitInfo) -> WorkspaceDir | None:
        """Where a workspace of a commit stood in the one before; None where it is new. One that is in the same
        directory is not asked for."""
        for move in self.between(commit, before):
            if _within(place.directory, move.new.directory):
                directory = move.old.directory + place.directory[len(move.new.directory) :]
                return self._history.tree(before.tree).at(directory)
        return None

    def after(self, place: WorkspaceDir, commit: CommitInfo, before: CommitInfo) -> str:
        """The directory of a workspace that `before` has and `commit` has somewhere else; "" where it is gone."""
        for move in self.between(commit, before):
            if _within(place.directory, move.old.directory):
                return move.new.directory + place.directory[len(move.old.directory) :]
        return ""

    def _same(
        self, place: WorkspaceDir, gone: Iterable[WorkspaceDir], trees: tuple[WorkspaceTree, ...], before: CommitInfo
    ) -> WorkspaceDir | None:
        sources, (new, old) = self._history.sources, trees
        uid = sources.stated_uid(new, place)
        stated = [(each, sources.stated_uid(old, each)) for each in gone]
        if not uid:
            back = (each for each, said in stated if said and self._alike(each, place))
            return next((each for each in back if self._first(each, before) == place.directory), None)
        same = [each for each, said in stated if said == uid]
        if same:
            return same[0]
        silent = [each for each, said in stated if not said]
        alike = [each for each in silent if self._alike(each, place)]
        if len(alike) == 1:
            return alike[0]
        return next((each for each in alike or silent if self._uid(each, before) == uid), None)

    def _alike(self, one: WorkspaceDir, other: WorkspaceDir) -> bool:
        a, b = (self._contents(each) for each in (one, other))
        return len(a & b) > _ALIKE * max(len(a), len(b)) or a == b

    def _contents(self, place: WorkspaceDir) -> set[tuple[str, str]]:
        """What is in a workspace's directory beside its workspace.yaml."""
        return {(e.name, e.id) for e in self._history.repo.entries(place.tree) if e.name not in WORKSPACE_FILES}

    # -- which one it is

    def born(self, place: WorkspaceDir, commit: CommitInfo) -> WorkspaceBirth:
        """Where a workspace that stands in a commit appeared."""
        last, here = commit, place
        for each, there in self._ways(place, commit):
            last, here = each, there
        return WorkspaceBirth(last.id, here.path)

    def _first(self, place: WorkspaceDir, commit: CommitInfo) -> str:
        """The directory in which it appeared."""
        directory = place.directory
        for _, there in self._ways(place, commit):
            directory = there.directory
        return directory

    def _ways(self, place: WorkspaceDir, begin: CommitInfo) -> Iterator[tuple[CommitInfo, WorkspaceDir]]:
        """Each commit with the workspace as it stood there, the newest first. A look at each commit."""
        history = self._history
        watch = Watched(history.repo, place.directory)
        seen = watch.look(begin.tree)
        for commit, before in history.steps(begin.id):
            yield commit, place
            if before is None:
                return
            last, seen = seen, watch.look(before.tree)
            if seen == last:
                continue
            found = history.tree(before.tree).at(place.directory) or self.before(place, commit, before)
            if found is None:
                return
            if found.directory != place.directory:
                watch = Watched(history.repo, found.directory)
                seen = watch.look(before.tree)
            place = found

    def _uid(self, place: WorkspaceDir, commit: CommitInfo) -> str:
        """The UID of a workspace's Workspace, by where it and its parent appeared."""
        parent = self._history.tree(commit.tree).owner(place.directory)
        if parent is None:
            return ""
        cluster = logical_cluster_name(self._fleet(), *_birth(self.born(parent, commit)))
        key = Key(WORKSPACES, cluster, "", paths.base(place.path))
        return object_uid(self._fleet(), key, own(self.born(place, commit).commit))

    def _fleet(self) -> str:
        recorded = self._history.recorded
        said = recorded.facts().id if recorded is not None else ""
        return said or self._history.repo.root_commit(self._history.head)


def _regrouped(found: Touched) -> Iterator[MovedWorkspace]:
    """Those that keep their path: a directory that only groups has another name, or is another."""
    for path in sorted(found.changed):
        old, new = found.left.get(path), found.places.get(path)
        if old is not None and new is not None and old.directory != new.directory:
            yield MovedWorkspace(old, new)


def _birth(born: WorkspaceBirth) -> tuple[str, CommitRef]:
    return born.path, own(born.commit)


def _by_depth(found: Iterable[str]) -> list[str]:
    return sorted(found, key=lambda path: (paths.depth(path), path))


def _within(directory: str, above: str) -> bool:
    return directory == above or directory.startswith(f"{above}/")
