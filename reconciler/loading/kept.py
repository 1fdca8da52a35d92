"""Workspaces that stay although their directories are gone: their removal has to be allowed first.

Called by steps. They are served as they were, and judged in the tree that they were last served from. The fleet's
record names the uppermost of each, and the commit that was served before it went, so that a recovery finds them again
and the commit that allows their removal is known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from apiserver.model import paths
from apiserver.model.commits import NONE, CommitRef
from apiserver.registry import tree
from apiserver.registry.tree import WorkspaceRecord
from reconciler.layout.compare import Touched
from reconciler.layout.errors import LayoutError
from reconciler.layout.grafts import BORDER
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.loading.case import Recorded, is_lost, was_served
from reconciler.loading.removals import REMOVED, Removals
from reconciler.loading.servedtrees import ServedTrees
from reconciler.loading.site import Site
from reconciler.loading.step import StepTarget
from reconciler.loading.world import World
from reconciler.plan.deletions import RefusedDeletion
from reconciler.statusbranch import format


class Kept(NamedTuple):
    """`tree`: where the workspace is judged; `why` it stays, None if its record says so already."""

    tree: WorkspaceTree
    why: LayoutError | None


class KeptWorkspaces:
    """Of one step. `tops`: the uppermost of them and of those that went with one commit, and what was served before
    they went."""

    def __init__(self, site: Site, target: StepTarget, served: ServedTrees, world: World) -> None:
        self.tops = dict(target.kept)
        self._store, self._trees, self._recorded = site.store, site.trees, target.recorded
        self._lost = target.lost
        self._served, self._world = served, world
        self.refused: dict[str, RefusedDeletion] = {}
        """Those that this step refused, by their uppermost workspace."""
        self._of: dict[str, Kept] = {}
        self._awaited: frozenset[str] = frozenset()
        """The uppermost of those that a recovery could not bring back, when the step began."""

    def of(self, path: str) -> Kept | None:
        return self._of.get(path)

    def paths(self) -> Iterable[str]:
        """Those that this step has to judge: they stay from now on, or are brought back."""
        return self._of.keys()

    def find(self, path: str) -> WorkspaceDir | None:
        """Its directory, as it was."""
        kept, record = self._of.get(path), self._world.record(path)
        return kept.tree.find(path, record.directory if record is not None else "") if kept is not None else None

    def is_apart(self, path: str, here: WorkspaceTree) -> bool:
        """Whether a workspace that stays has a directory that is another's by now; once it is, it is so for good."""
        kept, record = self._of.get(path), self._world.record(path)
        if kept is None or record is None:
            return False
        now_there = here.at(record.directory)
        return format.is_apart(record.directory) or (now_there is not None and now_there.path != path)

    def look_for_lost(self) -> None:
        """Finds those that a recovery could not bring back until now."""
        self.look()
        records = {path: self._world.record(path) for path in self._of}
        self._of = {path: self._of[path] for path, found in records.items() if found is not None and not found.served}
        self._awaited = frozenset(self._of).intersection(self.tops)

    def look(self) -> None:
        """Finds all of them where they are to be brought back: the store may not know them."""
        tops = self.tops
        alone = {top for top in tops if not any(top != each and paths.is_within(top, each) for each in tops)}
        for top, since in tops.items():
            here = self._at(top, since)
            uppermost = here.find(top)
            for place in here.workspaces(uppermost) if uppermost is not None else ():
                told = place.path in alone or self._was_served(place)
                self._of[place.path] = Kept(here, None if told else _with_another(place.directory))

    def _at(self, top: str, since: CommitRef) -> WorkspaceTree:
        """Where one stands that was there last in a commit."""
        return self._trees.at(since, self._claims(since)) if not since.repository else self._there(top, since)

    def is_lost(self, path: str) -> bool:
        """Whether one is not served since a recovery could not bring it back."""
        return self._lost_as(path) is not None

    def _lost_as(self, path: str) -> Recorded | None:
        """As what one is to be brought back that is lost; None of any other."""
        record = self._world.record(path)
        if record is None or record.served or self._lost is None:
            return None
        found = self._lost.served(path, record.directory)[0]
        return found if is_lost(record, found) else None

    def is_back(self, path: str) -> bool:
        """Whether one is back that a recovery could not bring back at once. Nothing more of it follows from this
        commit, which does not have it, until its removal is judged."""
        kept = self._of.get(path)
        if kept is None or kept.why is not None or self._recorded is not None:
            return False
        record = self._world.record(path)
        return record is not None and record.served

    def came_back(self) -> list[str]:
        """The uppermost of those of which is known by now what would go with them, and was not when the step began."""
        found = ((top, self._world.record(top)) for top in self._awaited if top in self.tops)
        return [top for top, it in found if it is not None and it.served and not _say_so(it.errors)]

    def _was_served(self, place: WorkspaceDir) -> bool:
        """Whether one that is to be brought back had a good commit: then it is held for its removal as it was."""
        return was_served(self._known(place.path, place.directory))

    def _known(self, path: str, directory: str) -> Recorded | None:
        """What the status branch knows of a workspace that is to be brought back."""
        found = self._recorded(path, directory) if self._recorded is not None else None
        return found or (self._lost.served(path, directory)[0] if self._lost is not None else None)

    def _claims(self, at: CommitRef) -> dict[str, str]:
        """Those of today's (Trees.claims) that may have counted at an earlier commit: by what was a workspace there."""
        repo, found = self._trees.repositories.own, dict[str, str]()
        for directory, path in self._trees.claims.items():
            origin = self._origin(path, directory)
            if origin and (origin.repository or repo.is_ancestor(origin.id, at.id)):
                found[directory] = path
        return found

    def _origin(self, path: str, directory: str) -> CommitRef:
        recorded, record = self._recorded and self._recorded(path, directory), self._world.record(path)
        if recorded is not None:
            return recorded.summary.origin
        return record.origin if record is not None else NONE

    def _there(self, top: str, since: CommitRef) -> WorkspaceTree:
        """Of a workspace in a tenant's repository: as a commit of that has it, and all else as it is served, or was
        before what stands around it went, too, or has been since that is held."""
        around = (at for above, at in self.tops.items() if above != top and paths.is_within(top, above))
        before = next((at for at in around if not at.repository), NONE) or self._held_around(top)
        known = self._known(top, "")
        border = known.summary.source.get(BORDER) if known is not None else None

        def there(commit: CommitRef) -> WorkspaceTree:
            return self._trees.at(commit, None, self._trees.since(since, top, self._trees.at(commit), border))

        # The one above may have had no source then: what stands there may be served while that is held.
        found = there(before) if before else None
        return found if found is not None and found.find(top) is not None else there(self._served.passed)

    def _held_around(self, top: str) -> CommitRef:
        """Where the innermost workspace above one is served that is held, NONE where none is."""
        above = paths.parent(top)
        while above is not None:
            known = self._known(above, "")
            if known is not None and known.summary.served:
                return known.summary.served
            above = paths.parent(above)
        return NONE

    def judge(
        self, removed: Collection[str], here: Touched, is_there: Callable[[str], bool], removals: Removals
    ) -> list[str]:
        """Which workspaces go: of `removed`, and of those that stayed until now. `here`: what the commit brings or
        changes; `is_there`: whether a workspace of this path does not go now."""
        before, gone = dict(self.tops), set(removed)
        paths_here = here.changed | here.appeared
        for top in before:
            if (
                removals.hears(top)
                or any(paths.is_within(p, top) for p in paths_here)
                or any(paths.is_within(top, p) for p in removed)
                or self._has_lost(top, here)
                or self._is_unjudged(top)
            ):
                del self.tops[top]
                gone.update(path for path in (top, *self._declared_below(top)) if not is_there(path))
        going, passed = [], removals.since
        for removal in removals.judge(gone, before):
            if not removal.stays:
                going += [record.path for record in removal.members]
                continue
            innermost = max((top for top in before if paths.is_within(removal.path, top)), key=len, default="")
            uppermost = next((record for record in removal.members if record.path == removal.path), None)
            since = self._served.since(uppermost) if uppermost is not None else passed
            self.tops[removal.path] = before.get(innermost) or since
            # What stayed below it already is not in that commit.
            self.tops |= {top: since for top, since in before.items() if paths.is_within(top, removal.path)}
            if removal.refused is not None:
                self.refused[removal.path] = removal.refused
            problem = removal.problem(self._stood(removal.members[0]) if removal.members else "")
            # What stays already is in no commit that came since.
            stood = partial(self._at, removal.path, before[innermost]) if innermost else partial(self._trees.at, passed)
            for record in removal.members:
                of_others = not record.served and record.path != removal.path
                why = _with_another(self._stood(record)) if of_others else problem
                self._of[record.path] = Kept(self._was(record) or stood(), why)
        return going

    def _was(self, record: WorkspaceRecord) -> WorkspaceTree | None:
        """Where one is served from, or is to be brought back; None of one that never was served."""
        found = self._of.get(record.path)
        return self._served.of(record) or (found.tree if found is not None else None)

    def _is_unjudged(self, top: str) -> bool:
        """Whether the removal of one could not be judged so far, or still cannot: nobody knows what it has before it is
        back."""
        record = self._world.record(top)
        if record is not None and record.served:
            return (top in self._awaited or not record.errors) and not _say_so(record.errors)
        lost = self._lost_as(top)
        return lost is not None and not _say_so(lost.summary.errors)

    def _stood(self, record: WorkspaceRecord) -> str:
        """The directory in which a workspace was, or is."""
        here = self._served.of(record) if format.is_apart(record.directory) else None
        place = here.find(record.path) if here is not None else None
        return place.directory if place is not None else record.directory

    def _has_lost(self, top: str, here: Touched) -> bool:
        """Whether the directory of one that stays, or of one below it, is another's with this commit."""
        come = [*here.appeared, *here.changed]
        found = (tree.workspace_at(self._store, path) for path in (top, *self._declared_below(top)) if come)
        stood = {record.directory for record in found if record is not None}
        places = (here.places.get(path) for path in come if stood)
        return any(place is not None and place.directory in stood for place in places)

    def _declared_below(self, top: str) -> Iterator[str]:
        """What was made through the API goes with what it stands in, and no commit says so."""
        found = ((path, tree.workspace_at(self._store, path)) for path in tree.below(self._store, top))
        return (path for path, record in found if record is not None and not record.stored)


def _say_so(errors: Iterable[str]) -> bool:
    """Whether some errors tell of a workspace's removal (Removal.problem)."""
    return any(f": {REMOVED}" in each for each in errors)


def _with_another(directory: str) -> LayoutError:
    """Of one that never was served, and stays with one above it. What would go with that says that one: a recovery,
    which brings it back, does not know it of this one."""
    text = "was removed with a workspace above it, which stays until that is allowed"
    return LayoutError(directory, 0, 0, text, "what that one says tells how")
