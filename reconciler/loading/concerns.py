"""Whom a step concerns: the workspaces that differ between two commits, those that wait for what the commit allows, and
those that are to go with it.

Called by steps, once in each; its cost follows what differs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import partial
from itertools import chain
from operator import methodcaller
from typing import NamedTuple

from apiserver.model import paths
from apiserver.model.identity import name_orders
from apiserver.registry import tree
from reconciler.layout.compare import Touched, touched
from reconciler.layout.tree import WorkspaceTree
from reconciler.loading import feeds
from reconciler.loading.followers import naming
from reconciler.loading.movable import Compared
from reconciler.loading.removals import Removals
from reconciler.loading.shipped import is_root_open
from reconciler.loading.site import Site
from reconciler.loading.step import StepTarget
from reconciler.loading.stepparts import StepParts
from reconciler.loading.tojudge import ToJudge
from reconciler.loading.ways import Way


class WaitingAndGoing(NamedTuple):
    """Paths of workspaces: those to judge, in the order in which they are begun with, and those that go."""

    waiting: list[str]
    going: list[str]


class Concerns:
    """Of one step."""

    def __init__(self, site: Site, target: StepTarget, way: Way, parts: StepParts, to_judge: ToJudge) -> None:
        self._site, self._target, self._way = site, target, way
        self._parts, self._to_judge = parts, to_judge
        self._world, self._cases, self._kept = parts.world, parts.cases, parts.kept

    def find(self, before: WorkspaceTree, also: Iterable[str]) -> WaitingAndGoing:
        """Of a step from `before`; `also` has some judged, whole. The other parts of the step know afterwards what
        differs."""
        target, cases = self._target, self._cases
        trees = self._trees_before(before)
        found = self._differing(trees)
        fed = feeds.touched(self._site.store, trees, target.tree, found.stirred)
        found.changed |= fed - found.appeared - found.removed
        cases.places = found.places
        cases.trespasses = target.admission.among(found, self._stands)
        cases.vouched = partial(target.admission.vouched, touched=found)
        self._parts.served.note(before, found.left)
        self._find_moves(found)
        made = {path for path in found.removed if self._parts.leavers.is_stored(path)}
        stays = {path for path in found.removed if self._parts.moves.takes(path)}
        going = self.removals(found.removed - made - stays, found)
        forced = self._to_judge.forced
        forced.update(also, made)
        if any(is_root_open(each) != is_root_open(target.tree) for each in trees):
            forced.add(paths.ROOT)
        forced.update(self._allowed())
        forced.update(self._displaced(found))
        kept = self._kept.paths() if not self._way.alone else ()
        further = {*forced, *kept} - found.changed - found.appeared
        rendered = sorted(
            (found.renders & (found.changed | found.appeared)) | fed | feeds.rendering(self._site.store, further)
        )
        self._parts.expected.begin(target.tree, map(cases.find, rendered))
        others = sorted(chain(found.changed, further), key=paths.depth)
        waiting = sorted(chain(others, self._side_by_side(found.appeared)), key=methodcaller("count", ":"))
        return WaitingAndGoing(waiting, going)

    def removals(self, removed: set[str], here: Touched) -> list[str]:
        """Of workspaces that are in the commit no more the paths of those that go. Those that have to be allowed first
        stay, and say so. `here`: what it touches."""
        limits, guard = self._target.limits, self._parts.guard
        if guard is None or limits is None:
            return list(removed)
        cases, allows = self._cases, bool(self._target.admission.allows)
        removals = Removals(
            guard,
            self._world.record,
            limits.workspaces,
            self._parts.moves.why,
            cases.barred,
            allows=allows,
            theirs=cases.allowed_there,
            is_lost=self._kept.is_lost,
        )
        # What leaves is allowed to: that a commit brought its directory back for a while changes nothing.
        leaving = self._parts.leavers.paths

        def is_there(path: str) -> bool:
            return path in leaving or cases.is_there(path)

        return [*self._kept.judge(removed - leaving, here, is_there, removals), *(removed & leaving)]

    def recheck_who_names(self, places: Collection[str]) -> None:
        """Has whoever takes something of a workspace by one of these paths, where it is or was, judged again."""
        found = naming(self._site.store, places, self._world.of_types)
        self._to_judge.follow(sorted(found.bound))
        for path in sorted(found.typed):
            self._to_judge.again(path)

    def _trees_before(self, before: WorkspaceTree) -> list[WorkspaceTree]:
        """Where workspaces may be: at `before`, some at a commit that was never finished and that this one does not
        follow from."""
        return [before, *map(self._site.trees.at, self._target.left)]

    def _differing(self, trees: list[WorkspaceTree]) -> Touched:
        found = touched(self._target.tree, trees[0], self._cases.known)
        for each in trees[1:]:
            found |= touched(self._target.tree, each, self._cases.known)
        return found

    def _side_by_side(self, appeared: Collection[str]) -> list[str]:
        """In the order in which they will stand in the store, so that what is written together touches few of its
        pages: of many workspaces that is half of what goes to disk."""
        some = [*appeared]
        orders = name_orders(self._site.fleet, some, self._target.moment.commit)
        return [path for _, path in sorted(zip(orders, some, strict=True))]

    def _stands(self, path: str) -> str:
        record = self._world.record(path)
        return record.directory if record is not None else ""

    def _find_moves(self, found: Touched) -> None:
        parts = self._parts
        if parts.guard is None or parts.writes.keeps_back:
            return  # nothing is served yet, or the commit is our own
        parts.moves.find(Compared(found, self._target.tree, self._kept.tops))
        made = parts.moves.made(found.appeared, self._target.moment.commit) if self._target.passed else ()
        if made:
            # A load came to its end between a move and what follows from it.
            self._to_judge.forced.update(made)
            self.recheck_who_names({*made, *(path for path in found.removed if self._world.record(path) is None)})

    def _allowed(self) -> Iterator[str]:
        """The workspaces that are held for a deletion which the commit allows, or for what it allows others to have
        touched."""
        yield from (path for path in self._target.admission.allows if self._cases.find(path) is not None)
        guard, hears = self._parts.guard, self._way.hears and not self._way.alone
        said = guard.said() if guard is not None and hears else ()
        for path, errors in tree.held(self._site.store).items() if said else ():
            if any(each in error for each in said for error in errors) and self._cases.find(path) is not None:
                yield path

    def _displaced(self, here: Touched) -> Iterator[str]:
        """The workspaces that are held, and in whose directory the commit has another one."""
        held = tree.held(self._site.store) if here.appeared or here.changed else {}
        places = ((path, here.places.get(path)) for path in (here.appeared | here.changed if held else ()))
        come = {place.directory: path for path, place in places if place is not None}
        for path in held if come else ():
            if come.get(self._stands(path), path) != path and self._cases.find(path) is not None:
                yield path
