"""One workspace through the commits of a history: those in which anything of it differs, and where it stood.

Called by log. It is followed by its directory, and to the one from which it moved; where it was taken away and one came
again in the same place, both are told. A commit that does not touch it costs one look on the way to its directory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from reconciler.history.fleet import FleetHistory
from reconciler.history.moved import MoveHistory, differing
from reconciler.history.watched import Watched
from reconciler.layout.inputs import shares_differ, states
from reconciler.layout.level import RENDERED_BY, SUFFIXES, WORKSPACE_FILES
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.repository.objects import CommitInfo, TreeEntry


class TouchedWorkspace(NamedTuple):
    """A commit in which something of a workspace may differ, the commit before, and the workspace in both: None where
    it is not there."""

    commit: CommitInfo
    before: CommitInfo | None
    new: WorkspaceDir | None
    old: WorkspaceDir | None


def followed(history: FleetHistory, moves: MoveHistory, directory: str) -> Iterator[TouchedWorkspace]:
    """The workspace in a directory of the head, or that ever was in it; the newest commit first."""
    watch = Watched(history.repo, directory)
    now = None
    for commit, before in history.steps():
        now = watch.look(commit.tree) if now is None else now
        was = watch.look(before.tree) if before is not None else None
        fed = before is not None and is_fed(history, directory, commit, before)
        if was == now and not fed:
            continue
        # What the directories above say, as in a .treeplaneignore, is of all that is below.
        within = was is not None and was.above == now.above
        now = was
        new = history.tree(commit.tree).at(directory)
        old = history.tree(before.tree).at(directory) if before is not None else None
        if new is not None and old is None and before is not None:
            old = moves.before(new, commit, before)
        if new is None and old is not None and before is not None:
            new = _left(history, old, commit, before)
        if new is None and old is None:
            continue
        apart = new is None or old is None or old.directory != directory or not within
        if apart or fed or (new is not None and old is not None and _is_its(history, new, old)):
            yield TouchedWorkspace(commit, before, new, old)
        if old is not None and before is not None and old.directory != directory:
            directory = old.directory
            watch = Watched(history.repo, directory)
            now = watch.look(before.tree)


def is_fed(history: FleetHistory, directory: str, commit: CommitInfo, before: CommitInfo) -> bool:
    """Whether something differs in what is shared of which a workspace is rendered."""
    new, old = history.tree(commit.tree), history.tree(before.tree)
    if not shares_differ(new, old):
        return False
    place = new.at(directory)
    elsewhere = {
        path
        for each in (history.sources.rendered(new, place) if place is not None else ())
        for path in each.inputs.elsewhere
    }
    return states(new, elsewhere) != states(old, elsewhere)


def _left(history: FleetHistory, old: WorkspaceDir, commit: CommitInfo, before: CommitInfo) -> WorkspaceDir | None:
    """A workspace whose workspace.yaml went alone: what is in its directory stays its own."""
    found = differing(history.tree(commit.tree), history.tree(before.tree))
    place = found.places.get(old.path) if found is not None else None
    return place if place is not None and place.directory == old.directory else None


def _is_its(history: FleetHistory, new: WorkspaceDir, old: WorkspaceDir) -> bool:
    """Whether what differs may be the workspace's own, and not that of one below it: a wide directory of workspaces is
    not read for each of them."""
    if history.repo.pick(new.tree, RENDERED_BY) or history.repo.pick(old.tree, RENDERED_BY):
        return True  # it is made of all that is there
    return any(_is_own(history, entry) for side in history.repo.unlike(new.tree, old.tree) for entry in side)


def _is_own(history: FleetHistory, entry: TreeEntry) -> bool:
    if entry.kind == "tree":
        return not history.repo.pick(entry.id, WORKSPACE_FILES)
    return entry.kind != "blob" or entry.name.endswith(SUFFIXES) or entry.name.startswith(".")
