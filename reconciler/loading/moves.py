"""Workspaces that a commit has somewhere else than the one before.

Called by steps, for what appears and goes between two trees. A directory that appears, and whose workspace.yaml states
the UID of a workspace whose directory goes with the same commit, is that workspace. So is one that appears where such a
workspace first stood and says what that says: a commit that takes a move back states no UID. All below goes along. What
is against a move movable says, and what becomes of it in the store relocation.

What is refused stays where it was, and nothing is made where it was to be but a workspace that says why.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from apiserver.model import paths
from apiserver.model.commits import CommitRef
from apiserver.model.keys import Key
from apiserver.model.storagenames import WORKSPACES
from apiserver.registry import codec, tree
from apiserver.registry.tree import WorkspaceRecord
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.loading.movable import Compared, Movable, Move
from reconciler.loading.renames import renames
from reconciler.loading.site import Site
from reconciler.loading.world import World
from reconciler.plan.trespasses import Trespasses

SAID = "metadata.uid is "
"""How every error begins for which a workspace is held that states a UID."""


class WorkspaceMoves:
    """Of one step. `found`: those that there are; `refused`: why workspaces stay that were to move, by where they are;
    `renames`: what looks like a move and is none. `known`: the uppermost of the workspaces that stay since earlier
    though their directories are gone. `trespassed`: what was touched of a workspace without a right."""

    def __init__(
        self,
        site: Site,
        world: World,
        movable: Movable,
        known: Collection[str],
        trespassed: Callable[[str], Trespasses],
    ) -> None:
        self._store, self._sources, self._guesses = site.store, site.sources, site.guesses
        self._world, self._movable = world, movable
        self._known = frozenset(known)
        self._trespassed = trespassed
        self.found: list[Move] = []
        self.refused: dict[str, str] = {}
        self.renames: dict[str, str] = {}
        self._unsettled = ""
        """Why nothing goes with the commit: it may be what is to move."""

    def find(self, at: Compared) -> None:
        """Cost follows what appears and goes."""
        stated: dict[str, list[str]] = {}
        state_none = set[bytes]()
        for path in sorted(at.touched.appeared, key=paths.depth):
            bare = at.touched.places.bare(path)
            if bare is not None and bare.common in state_none and not at.touched.removed:
                continue  # it is like one that states none
            place = at.place(path)
            uid = self._sources.stated_uid(at.tree, place) if place is not None else ""
            if bare is not None and not uid:
                state_none.add(bare.common)
            if uid:
                stated.setdefault(uid, []).append(path)
            elif at.touched.removed and place is not None and self._is_unreadable(at, place):
                self._unsettled = f"{place.manifest_path} cannot be read, and may state what moves there"
        going = [record for path in sorted(at.touched.removed, key=paths.depth) if (record := self._world.record(path))]
        self.renames = renames(at)
        self._by_uid(at, stated, going)
        self._back(at, going)
        said = {path for found in stated.values() for path in found}
        silent = (each for each in self.renames.items() if not self.takes(each[0]) and each[1] not in said)
        self.renames = {old: new for old, new in silent if old not in self.refused}

    def made(self, appeared: Iterable[str], commit: CommitRef) -> list[str]:
        """Those that moved with this commit already."""
        found = (record for path in appeared if (record := self._world.record(path)) is not None)
        return [record.path for record in found if record.head == commit and self._first(record)]

    @property
    def are_there(self) -> bool:
        """Whether the commit moves anything, or was to."""
        return bool(self.found or self.refused or self._unsettled)

    def takes(self, path: str) -> bool:
        return any(move.takes(path) for move in self.found)

    def brings(self, path: str) -> bool:
        return any(move.brings(path) for move in self.found)

    def why(self, path: str) -> str:
        """Why the workspace at `path`, which the commit has no more, stays for a move's sake; "" if it does not. Where
        nothing ever was served there is nothing to lose."""
        why = self._why(path)
        there = (self._world.record(each) for each in (path, *tree.below(self._store, path))) if why else ()
        return why if any(record is not None and record.served for record in there) else ""

    def _why(self, path: str) -> str:
        refused = next((why for old, why in self.refused.items() if paths.is_within(path, old)), "")
        if refused or path not in self._known:
            return refused or self._unsettled
        records = (tree.workspace_at(self._store, held) for held in tree.held(self._store))
        waits = next((record.path for record in records if record is not None and is_unsettled(record)), "")
        return f"{waits} states the UID of no workspace, and may be what it was to become" if waits else ""

    def waits(self, path: str) -> bool:
        """Whether nothing is made at `path`, since it is below a workspace that is to be another one."""
        above = paths.parent(path)
        while above is not None:
            record = self._world.record(above)
            if record is not None:
                return is_unsettled(record)
            above = paths.parent(above)
        return False

    def _by_uid(self, at: Compared, stated: Mapping[str, list[str]], going: list[WorkspaceRecord]) -> None:
        for record in going if stated else ():
            here = self._where(record, stated)
            if here and not self.takes(record.path) and self._world.record(here[0]) is None:
                move = Move(record.path, here[0])
                twice = f"{here[1]} states its UID, too" if len(here) > 1 else ""
                why = twice or self._without_right(move, at) or self._movable.against(move, at)
                if why:
                    self.refused[move.old] = f"it cannot move to {move.new}: {why}"
                else:
                    self.found.append(move)
        for path in (each for found in stated.values() for each in found):
            if not self.brings(path) and not self._guesses and self._world.record(path) is None:
                self._unsettled = f"{path} states the UID of a workspace that does not move there"

    def _where(self, record: WorkspaceRecord, stated: Mapping[str, list[str]]) -> list[str]:
        """The paths that are said to be a workspace's."""
        if self._guesses:
            alike = self.renames.get(record.path, "")
            return [alike] if any(alike in said for said in stated.values()) else []
        return stated.get(self._uid(record), [])

    def _uid(self, record: WorkspaceRecord) -> str:
        parent = self._world.record(record.parent)
        found = self._store.get(Key(WORKSPACES, parent.cluster, "", paths.base(record.path))) if parent else None
        return codec.uid_of(found.value) if found is not None else ""

    def _is_unreadable(self, at: Compared, place: WorkspaceDir) -> bool:
        found = self._sources.workspace(at.tree, place)
        return found is not None and bool(found.problems)

    def _back(self, at: Compared, going: list[WorkspaceRecord]) -> None:
        for record in going if at.touched.appeared else ():
            move = Move(record.path, self._first(record))
            if move.new not in at.touched.appeared or self.takes(move.old) or self.brings(move.new):
                continue
            against = self._without_right(move, at) or self._movable.against(move, at)
            if self._world.record(move.new) is None and not against:
                self.found.append(move)

    def _without_right(self, move: Move, at: Compared) -> str:
        """Why whoever moves something may not, "" if he may."""
        touched = at.touched.removed | at.touched.appeared
        concerned = (path for path in sorted(touched) if move.takes(path) or move.brings(path))
        return next((str(each.error) for path in concerned for each in self._trespassed(path)), "")

    def _first(self, record: WorkspaceRecord) -> str:
        """Where one that moved appeared, "" of one that did not."""
        return str(tree.summary(self._store, record.path).get("first", ""))


def is_unsettled(record: WorkspaceRecord) -> bool:
    """Whether a workspace never was served, for a UID that its workspace.yaml states."""
    return not record.served and any(SAID in error for error in record.errors)
