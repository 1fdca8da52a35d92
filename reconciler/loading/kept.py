"""Workspaces that stay although their directories are gone: their removal has to be allowed first.

Called by steps. They are served as they were, and judged in the tree that they were last served from. The fleet's
record names the uppermost of each, and the commit that was served before it went, so that a recovery finds them again
and the commit that allows their removal is known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from apiserver.model import paths
from apiserver.model.commits import CommitRef
from apiserver.registry import tree
from apiserver.storage.protocol import Store
from reconciler.layout.errors import LayoutError
from reconciler.layout.tree import WorkspaceDir, WorkspaceTree
from reconciler.loading.removals import Removals
from reconciler.loading.servedtrees import ServedTrees
from reconciler.loading.trees import Trees
from reconciler.loading.world import World
from reconciler.plan.deletions import RefusedDeletion


class Kept(NamedTuple):
    """`tree`: where the workspace is judged; `why` it stays, None if its record says so already."""

    tree: WorkspaceTree
    why: LayoutError | None


class KeptWorkspaces:
    """Of one step. `tops`: the uppermost of them and of those that went with one commit, and what was served before
    they went."""

    def __init__(
        self, store: Store, trees: Trees, served: ServedTrees, world: World, tops: Mapping[str, CommitRef]
    ) -> None:
        self.tops = dict(tops)
        self._store, self._trees, self._served, self._world = store, trees, served, world
        self.refused: dict[str, RefusedDeletion] = {}
        """Those that this step refused, by their uppermost workspace."""
        self._of: dict[str, Kept] = {}

    def of(self, path: str) -> Kept | None:
        return self._of.get(path)

    def paths(self) -> Iterable[str]:
        """Those that this step has to judge: they stay from now on, or are brought back."""
        return self._of.keys()

    def find(self, path: str) -> WorkspaceDir | None:
        """Its directory, as it was."""
        kept, record = self._of.get(path), self._world.record(path)
        return kept.tree.find(path, record.directory if record is not None else "") if kept is not None else None

    def look_for_lost(self) -> None:
        """Finds those that a recovery could not bring back until now."""
        self.look()
        records = {path: self._world.record(path) for path in self._of}
        self._of = {path: self._of[path] for path, found in records.items() if found is not None and not found.served}

    def look(self) -> None:
        """Finds all of them where they are to be brought back: the store may not know them."""
        for top, since in self.tops.items():
            here = self._trees.at(since) if not since.repository else self._there(top, since)
            uppermost = here.find(top)
            for directory in here.workspaces(uppermost) if uppermost is not None else ():
                self._of[directory.path] = Kept(here, None)

    def _there(self, top: str, since: CommitRef) -> WorkspaceTree:
        """Of a workspace in a tenant's repository: as a commit of that has it, and all else as it is served."""
        served = self._served.passed
        return self._trees.at(served, None, self._trees.since(since, top, self._trees.at(served)))

    def judge(
        self, removed: Collection[str], here: Collection[str], is_there: Callable[[str], bool], removals: Removals
    ) -> list[str]:
        """Which workspaces go: of `removed`, and of those that stayed until now. `here`: the paths of what the commit
        brings or changes; `is_there`: whether a workspace of this path does not go now."""
        before, gone = dict(self.tops), set(removed)
        for top in before:
            if (
                removals.hears(top)
                or any(paths.is_within(p, top) for p in here)
                or any(paths.is_within(top, p) for p in removed)
            ):
                del self.tops[top]
                gone.update(path for path in (top, *self._declared_below(top)) if not is_there(path))
        going = []
        for removal in removals.judge(gone, before):
            if not removal.stays:
                going += [record.path for record in removal.members]
                continue
            innermost = max((top for top in before if paths.is_within(removal.path, top)), key=len, default="")
            uppermost = next((record for record in removal.members if record.path == removal.path), None)
            since = self._served.since(uppermost) if uppermost is not None else removals.since
            self.tops[removal.path] = before.get(innermost) or since
            # What stayed below it already is not in that commit.
            self.tops |= {top: since for top, since in before.items() if paths.is_within(top, removal.path)}
            if removal.refused is not None:
                self.refused[removal.path] = removal.refused
            for record in removal.members:
                self._of[record.path] = Kept(self._served.of(record) or self._trees.at(removals.since), removal.problem)
        return going

    def _declared_below(self, top: str) -> Iterator[str]:
        """What was made through the API goes with what it stands in, and no commit says so."""
        found = ((path, tree.workspace_at(self._store, path)) for path in tree.below(self._store, top))
        return (path for path, record in found if record is not None and not record.stored)
