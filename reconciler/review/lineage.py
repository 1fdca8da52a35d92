"""Where a workspace stood in an earlier commit: followed back along first parents, also where it moved on the way.

Called by restoration. A path may have been another workspace's then: one that went, before this one came. Which one
this is says the commit in which it appeared, as the status branch has it; where nothing says that, one that was there
all along is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from apiserver.model import paths
from reconciler.layout.compare import touched
from reconciler.layout.errors import BadFile
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.workspace import declaration
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.loading.movable import Compared
from reconciler.loading.renames import renames

Claimed = Callable[[str], WorkspaceTree]


class Ancestor(NamedTuple):
    """`place`: where the workspace stood in the earlier commit; None: nothing was there that can be it. `appeared`: the
    commit with which it came, where that is a later one: what stood at its path before was another. `gone`: the last
    commit that had it, where today's has it no more."""

    place: WorkspaceDir | None
    appeared: str = ""
    gone: str = ""


class MovedAway(Exception):
    """The workspace that stood at a path is elsewhere by now. `to`: its path; `commit`: with which it moved."""

    def __init__(self, to: str, commit: str) -> None:
        super().__init__(to)
        self.to, self.commit = to, commit


class Lineage:
    """`tree`: makes the tree of a commit. `chain`: first parents, the earlier commit first, today's last. `origin`: the
    commit in which the workspace appeared, "" where that is not known."""

    def __init__(self, tree: Claimed, chain: list[str], origin: str) -> None:
        self._tree, self._chain, self._origin = tree, chain, origin

    def of(self, path: str, place: WorkspaceDir | None) -> Ancestor:
        """`place`: where it stands today, None if it does not. Raises MovedAway."""
        at, gone = len(self._chain) - 1, ""
        if place is None:
            at, place = self._last(path)
            gone = self._chain[at] if place is not None else ""
            if place is None:
                return Ancestor(None)
        while at > 0:
            before = self._before(place, at)
            if before is None:
                # Gone for a while, and never served as such: it is the same where it was there before that.
                return Ancestor(self._twin(path), "" if self._was_there(0) else self._chain[at], gone)
            place, at = before, at - 1
        return Ancestor(place, "", gone)

    def _last(self, path: str) -> tuple[int, WorkspaceDir | None]:
        """The newest commit that has a workspace of a path, by its number."""
        for at in range(len(self._chain) - 2, -1, -1):
            found = self._tree(self._chain[at]).find(path)
            if found is not None:
                self._require_gone(path, at + 1)
                return at, found
        return 0, None

    def _require_gone(self, path: str, at: int) -> None:
        for old, new in self._renamed(at).items():
            if paths.is_within(path, old) and self._states(new, at):
                raise MovedAway(new + path.removeprefix(old), self._chain[at])

    def _before(self, place: WorkspaceDir, at: int) -> WorkspaceDir | None:
        """Where the workspace that stands in a place stood in the commit before, None if it came with this one."""
        tree = self._tree(self._chain[at - 1])
        there = tree.repo.tree_at(tree.tree_id, place.directory)
        if there == place.tree:
            return place
        found = tree.find(place.path, place.directory)
        if found is not None:
            return found
        for old, new in self._renamed(at).items():
            if paths.is_within(place.path, new) and self._is_same(new, at):
                return tree.find(old + place.path.removeprefix(new))
        return None

    def _is_same(self, path: str, at: int) -> bool:
        """Whether what looks like a move is one: the workspace was there before already, or says which one it is."""
        return self._was_there(at - 1) if self._origin else self._states(path, at)

    def _was_there(self, at: int) -> bool:
        """Whether it is known to have appeared by then."""
        commit = self._chain[at]
        return bool(self._origin) and self._tree(commit).repo.is_ancestor(self._origin, commit)

    def _states(self, path: str, at: int) -> bool:
        tree = self._tree(self._chain[at])
        place = tree.find(path)
        if place is None or place.manifest is None:
            return False
        try:
            return bool(declaration(tree.repo.blob(place.manifest.id), place.manifest_path).uid)
        except BadFile:
            return False

    def _renamed(self, at: int) -> dict[str, str]:
        """What seems to move with a commit, by old paths."""
        now, before = self._tree(self._chain[at]), self._tree(self._chain[at - 1])
        try:
            return renames(Compared(touched(now, before), now, ()))
        except BadFile:
            return {}

    def _twin(self, path: str) -> WorkspaceDir | None:
        """What was at the path in the earlier commit, whoever that was."""
        return self._tree(self._chain[0]).find(path)
