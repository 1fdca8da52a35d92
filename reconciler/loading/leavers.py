"""The workspaces that leave, as one step sees them: who goes at once, who begins to wait, and what a commit has in the
place of one that waits, or that was made through the API.

Called by steps. What becomes of each is departure's and removal's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from apiserver.model import paths
from apiserver.registry import tree
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.protocol import Store
from reconciler.layout.errors import LayoutError
from reconciler.layout.tree import WorkspaceDir
from reconciler.loading import departure
from reconciler.loading.changeset import WorkspaceChanges
from reconciler.loading.moment import Moment
from reconciler.loading.removal import remove
from reconciler.loading.world import World


class Leavers:
    """`paths`: of those that leave."""

    def __init__(self, store: Store, world: World, moment: Moment, known: Collection[str]) -> None:
        """`known`: paths of those that the store may not know yet."""
        self._store, self._world, self._moment = store, world, moment
        self.paths = {*tree.leaving(store), *known}

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
            return self._stays_away(record, ())
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

    def in_place_of(self, path: str, place: WorkspaceDir | None) -> WorkspaceChanges | None:
        """What is said where a commit has a workspace (`place`) at `path`, or no more, while another is in the way
        there or above. What is to stand below that is judged with it, once it has gone, and None."""
        record = self._world.record(path)
        if record is None:
            self._world.gone(path)
        if record is None or (path not in self.paths and not record.stored) or (place is None and not record.errors):
            return None
        problem = _problem if path in self.paths else _taken
        return self._stays_away(record, [problem(path, place)] if place is not None else ())

    def _stays_away(self, record: WorkspaceRecord, why: Iterable[LayoutError]) -> WorkspaceChanges:
        parent = self._world.record(record.parent) if record.parent else None
        held, changes = departure.stay_away(self._store, record, parent, self._moment, why)
        self._world.moved(held)
        return changes


def _problem(path: str, place: WorkspaceDir) -> LayoutError:
    text = f"workspace {path} is being deleted still: something in it waits for finalizers"
    where = f"the Workspace {paths.base(path)} in {paths.parent(path)} says what"
    return LayoutError(place.directory, 0, 0, text, f"it is taken as soon as that has gone; {where}")


def _taken(path: str, place: WorkspaceDir) -> LayoutError:
    text = f"workspace {path} was made through the API, and is not this directory's"
    return LayoutError(place.directory, 0, 0, text, "give the directory another name; or delete that workspace first")
