"""The workspaces that leave, as one step sees them: who goes at once, who begins to wait, and what a commit has in the
place of one that waits, or that was made through the API.

Called by steps. What becomes of each is departure's and removal's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from apiserver.model import paths
from apiserver.registry import tree
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.protocol import Store
from reconciler.layout.errors import LayoutError
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.loading import departure
from reconciler.loading.changeset import WorkspaceChanges
from reconciler.loading.departure import AskedBehind
from reconciler.loading.moment import Moment
from reconciler.loading.removal import remove
from reconciler.loading.world import World

AskedOf = dict[str, Any]
"""Of one path, see Summary.asked."""


class Leavers:
    """`paths`: of those that leave."""

    def __init__(self, store: Store, world: World, moment: Moment, known: Collection[str]) -> None:
        """`known`: paths of those that the store may not know yet."""
        self._store, self._world, self._moment = store, world, moment
        self.paths = {*tree.leaving(store), *known}
        self._known: dict[str, AskedBehind] = {}

    def in_the_way(self, path: str) -> bool:
        """Whether no commit can have a workspace at `path`: one leaves there or above it, or was made through the
        API."""
        return bool(self._top(path)) or self.is_stored(path)

    def is_stored(self, path: str) -> bool:
        """Whether the workspace at `path`, or one above it, was made through the API. None stands above one that has a
        record and was not made so itself."""
        at: str | None = path
        while at is not None:
            record = self._world.standing(at)
            if record is not None:
                return record.stored
            at = paths.parent(at)
        return False

    def _top(self, path: str) -> str:
        """The uppermost that leaves, of the workspace at `path` and those above it; "" if none does."""
        if not self.paths:
            return ""
        parts = path.split(":")
        above = (":".join(parts[:length]) for length in range(1, len(parts) + 1))
        return next((each for each in above if each in self.paths), "")

    def take_away(self, record: WorkspaceRecord) -> WorkspaceChanges:
        """What takes a workspace away: at once or, where something in it waits for finalizers, in the end. Called
        when the store says of those below it that they leave."""
        path, parent = record.path, self._world.record(record.parent) if record.parent else None
        if path in self.paths:
            # Whoever had put something in its place took it back.
            return self._stays_away(record, (), {} if self._top(path) == path else None)
        if not departure.is_awaited(self._store, record):
            return remove(self._store, record, parent)
        left, changes = departure.depart(self._store, record, parent, self._moment)
        self.paths.add(path)
        self._world.moved(left)
        return changes

    def again(self, record: WorkspaceRecord) -> WorkspaceChanges:
        """The same, where somebody wrote to the workspace meanwhile."""
        if not record.leaves:
            self.paths.discard(record.path)
        return self.take_away(record)

    def in_place_of(
        self, path: str, place: WorkspaceDir | None, said: Callable[[str, AskedOf], AskedOf]
    ) -> WorkspaceChanges | None:
        """What is said where a commit has a workspace (`place`) at `path`, or no more, while another is in the way
        there or above. What is to stand below that is judged with it, once it has gone. `said`: what is known by now of
        who may have it there (see Summary.asked), by what was; that is kept until then. None: nothing is said."""
        record, top = self._world.record(path), self._top(path)
        asked = self._asked(top, path, place, said) if top else None
        if record is None:
            self._world.gone(path)
        here = record is not None and (path in self.paths or record.stored)
        if record is None or not here or (place is None and not record.errors):
            above = self._world.record(top) if asked is not None else None
            return departure.remember(self._store, above, asked) if above is not None and asked is not None else None
        problem = _problem if path in self.paths else _taken
        return self._stays_away(record, [problem(path, place)] if place is not None else (), asked)

    def _asked(
        self, top: str, path: str, place: WorkspaceDir | None, said: Callable[[str, AskedOf], AskedOf]
    ) -> AskedBehind | None:
        """What is known of who may have workspaces at and below `top`, None where it is what is stored."""
        record = self._world.record(top)
        if record is None:
            return None
        before = self._known[top] if top in self._known else departure.asked_behind(self._store, record)
        now = said(path, before.get(path) or {}) if place is not None else {}
        asked = {each: known for each, known in before.items() if each != path} | ({path: now} if now else {})
        self._known[top] = asked
        return asked if asked != before else None

    def _stays_away(
        self, record: WorkspaceRecord, why: Iterable[LayoutError], asked: AskedBehind | None = None
    ) -> WorkspaceChanges:
        parent = self._world.record(record.parent) if record.parent else None
        held, changes = departure.stay_away(self._store, record, parent, self._moment, why, asked)
        self._world.moved(held)
        return changes


def _problem(path: str, place: WorkspaceDir) -> LayoutError:
    text = f"workspace {path} is being deleted still: something in it waits for finalizers"
    where = f"the Workspace {paths.base(path)} in {paths.parent(path)} says what"
    return LayoutError(place.directory, 0, 0, text, f"it is taken as soon as that has gone; {where}")


def _taken(path: str, place: WorkspaceDir) -> LayoutError:
    text = f"workspace {path} was made through the API, and is not this directory's"
    return LayoutError(place.directory, 0, 0, text, "give the directory another name; or delete that workspace first")
