"""One commit into the store: every workspace that it touches is judged and, if good, moved; the others do not notice.

Called by loader. Order: parents before children, providers before consumers, removals last and deepest first. Writes of
one workspace are one transaction; those of many are on their way together, and a step ends when all are on disk.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from enum import Enum
from functools import partial
from itertools import chain
from operator import methodcaller
from types import MethodType
from typing import ParamSpec, TypeVar
from weakref import ref

from apiserver.model import paths
from apiserver.model.commits import NONE, CommitRef
from apiserver.model.failures import described
from apiserver.model.identity import name_orders
from apiserver.model.keys import Key
from apiserver.registry import tree
from reconciler.layout.compare import Touched, touched
from reconciler.layout.tree import WorkspaceTree
from reconciler.loading import feeds, keptschemas, untold
from reconciler.loading.case import Case, Needs, Verdict
from reconciler.loading.cases import Cases
from reconciler.loading.changeset import ChangeSet, WorkspaceChanges, each_of
from reconciler.loading.expected import ExpectedRenderings
from reconciler.loading.followers import naming
from reconciler.loading.guard import Guard
from reconciler.loading.hearers import Hearers
from reconciler.loading.judge import Judge
from reconciler.loading.kept import KeptWorkspaces
from reconciler.loading.leavers import Leavers
from reconciler.loading.movable import Compared, Movable
from reconciler.loading.moves import WorkspaceMoves, is_unsettled
from reconciler.loading.offers import Offers
from reconciler.loading.relocation import Relocation
from reconciler.loading.removals import Removals
from reconciler.loading.servedtrees import ServedTrees
from reconciler.loading.shipped import is_root_open
from reconciler.loading.siblings import Siblings
from reconciler.loading.site import Site
from reconciler.loading.step import StepTarget
from reconciler.loading.takings import Takings
from reconciler.loading.turns import Steps, Turns
from reconciler.loading.ways import Way
from reconciler.loading.world import PutOff, World
from reconciler.plan import system
from reconciler.repository.errors import RepositoryError

log = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")

_RETRIES = 20
_PIECE = 64
"""Workspaces among which those that are alike are looked for: others are served after so many at the latest."""
_ROUNDS = 20
"""How often one step judges a workspace anew for others."""


class Earlier(Enum):
    """Of a workspace and a step that others overtake: it is past the step, was just taken past it, or waits."""

    PAST = "past"
    BROUGHT = "brought"
    WAITS = "waits"


class Stepper:
    """Runs one step; made anew for each.

    `pause` is called between two workspaces, when nothing of the step is half done.
    """

    def __init__(
        self, site: Site, target: StepTarget, way: Way, progress: Callable[[int], None] = lambda _: None
    ) -> None:
        self.pause: Callable[[], None] = lambda: None
        self._going: frozenset[str] = frozenset()
        self._passing = set(target.passed)
        self._site = site
        self._target = target
        self._way = way
        self._progress = progress
        self._pending: dict[str, None] = {}
        self._forced: set[str] = set()
        self._provided: set[str] = set()
        """To be judged again for what others provide; who is among `_forced` too has to be for more."""
        self._returned: list[str] = []
        """Who is back where it was. It goes on once all are back who follow from it: what they have counts for it."""
        self._turned: set[str] = set()
        """Those of which others that are held may say something else by now (Hearers.waiting)."""
        self._all = False
        self._untold: set[str] = set()
        """Providers of which it stands in the store that who takes something of them is to hear of it."""
        self._ends_kept = False
        """Whether a schema that is kept for consumers may be so for nobody any more."""
        self._turns = Turns(
            Steps(
                _weakly(self._waits),
                _weakly(self._judge_now),
                _weakly(self._stand),
                _weakly(self._look_again),
                _weakly(self._offers),
                _weakly(self._is_put_off),
            )
        )
        self._world = World(site.store, self._turns, empty=way.fills)
        self._hearers = Hearers(site.store, self._world)
        self._leavers = Leavers(site.store, self._world, target.moment, target.leaving)
        self._served = ServedTrees(site.store, site.trees, target)
        self._kept = KeptWorkspaces(site, target, self._served, self._world)
        self._expected = ExpectedRenderings(site.sources)
        self._cases = Cases(site, target, self._world, self._kept, self._served)
        self._siblings = Siblings(site.fleet, target, self._world, self._cases)
        movable = Movable(site.store, self._world, site.sources, self._served, self._leavers)
        self._moves = WorkspaceMoves(site, self._world, movable, target.kept, self._cases.barred)
        self._guard = self._new_guard()
        adopts = target.recorded is None and target.limits is None
        self._judge = Judge(site, way, self._world, self._served, self._guard, {} if adopts else None)
        self._writes = way.handover(site.store, self._world.written)
        self._takings = Takings(site.store, self._world, self._leavers, self._writes)
        self._verdicts: dict[str, tuple[Case, Verdict]] = {}
        self._attempts: dict[str, int] = {}
        self._rounds: dict[str, int] = {}
        self.done = ChangeSet()

    def everything(self) -> ChangeSet:
        """All workspaces of the commit: a first load, or a check of all."""
        self._all = True
        for _ in self._target.tree.workspaces():
            pass  # two directories of one path are known once all are seen, and both are held for it
        self._kept.look()
        self._expected.begin(self._target.tree, self._target.tree.renders.values())
        for directory in self._target.tree.workspaces():
            # Of two directories of one path it is the one that every search finds.
            self._cases.at = directory if directory.path not in self._target.tree.duplicates else None
            self._turns.take(directory.path)
        for path in [*self._kept.paths()]:
            self._turns.take(path)
        for path in system.shipped_workspaces():
            self._turns.take(path)
        return self._finish()

    def difference(self, before: WorkspaceTree, also: Iterable[str] = ()) -> ChangeSet:
        """The workspaces whose content differs from that in `before`, and those in `also` (judged whole)."""
        if self._target.recorded is not None:
            self._kept.look()
        elif self._target.lost is not None:
            self._kept.look_for_lost()
        waiting, going = self._concerned(before, also)
        self._relocate()
        self._pending.update(dict.fromkeys(waiting))
        self._going = frozenset(going)
        self._tell_who_missed()
        self._take(waiting)
        if going and not self._writes.keeps_back:
            self._take_away(going)
        return self._finish()

    def _take(self, waiting: list[str]) -> None:
        """Judges workspaces, those last that have to be waited for."""
        late, alike = list[str](), self._may_be_alike()
        for at in range(0, len(waiting), _PIECE):
            late += self._take_piece(waiting[at : at + _PIECE], alike=alike)
        for path in late:
            self._expected.wait(path, self.pause)
            self._turns.take(path)
            self.pause()

    def _take_piece(self, some: list[str], *, alike: bool) -> list[str]:
        """Judges workspaces but those that have to be waited for, which it returns. `alike`: who is like others is
        looked for, and again each time there is something new to go by."""
        late, left, known = list[str](), deque(some), -1
        while left:
            if alike and known != self._siblings.learned:
                known, left = self._siblings.learned, deque(self._stamp([*left]))
                continue
            path = left.popleft()
            if not self._expected.is_there(path):
                late.append(path)
                continue
            self._turns.take(path)
            self.pause()
        return late

    def _concerned(self, before: WorkspaceTree, also: Iterable[str]) -> tuple[list[str], list[str]]:
        """The paths of workspaces to judge, and of those that go."""
        found = touched(self._target.tree, before, self._cases.known)
        trees = self._trees_before(before)
        for each in trees[1:]:
            found |= touched(self._target.tree, each, self._cases.known)
        fed = feeds.touched(self._site.store, trees, self._target.tree, found.stirred)
        found.changed |= fed - found.appeared - found.removed
        self._cases.places = found.places
        self._cases.trespasses = self._target.admission.among(found, self._stands)
        self._cases.vouched = partial(self._target.admission.vouched, touched=found)
        self._served.note(before, found.left)
        self._find_moves(found)
        made = {path for path in found.removed if self._leavers.is_stored(path)}
        stays = {path for path in found.removed if self._moves.takes(path)}
        going = self._removals(found.removed - made - stays, found)
        self._forced.update(also, made)
        if any(is_root_open(each) != is_root_open(self._target.tree) for each in trees):
            self._forced.add(paths.ROOT)
        self._forced.update(self._allowed())
        self._forced.update(self._displaced(found))
        kept = self._kept.paths() if not self._way.alone else ()
        further = {*self._forced, *kept} - found.changed - found.appeared
        rendered = sorted(
            (found.renders & (found.changed | found.appeared)) | fed | feeds.rendering(self._site.store, further)
        )
        self._expected.begin(self._target.tree, map(self._cases.find, rendered))
        others = sorted(chain(found.changed, further), key=paths.depth)
        return sorted(chain(others, self._side_by_side(found.appeared)), key=methodcaller("count", ":")), going

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
        if self._guard is None or self._writes.keeps_back:
            return  # nothing is served yet, or the commit is our own
        compared = Compared(found, self._target.tree, self._kept.tops)
        self._moves.find(compared)
        self.done.renames = self._moves.renames
        made = self._moves.made(found.appeared, self._target.moment.commit) if self._target.passed else ()
        if made:
            # A load came to its end between a move and what follows from it.
            self._forced.update(made)
            self._recheck_who_names({*made, *(path for path in found.removed if self._world.record(path) is None)})

    def _relocate(self) -> None:
        """Has those that move be in their new places, where they are judged then, and others hear of it."""
        target, world = self._target, self._world
        relocation = Relocation(self._site.store, target.moment.commit, self._directory, world.of_types, target.carry)
        places = relocation.take(self._moves.found, world, self.done)
        declared = [new for new in places.values() if not self._leavers.is_stored(new)]
        self._forced.update(declared)
        self._pending.update(dict.fromkeys(declared))
        self._recheck_who_names({*places, *places.values()})

    def _directory(self, path: str) -> str:
        place = self._cases.find(path)
        return place.directory if place is not None else ""

    def _recheck_who_names(self, places: Collection[str]) -> None:
        """Whoever takes something of a workspace by one of these paths, where it is or was."""
        found = naming(self._site.store, places, self._world.of_types)
        self._recheck(sorted(found.bound))
        for path in sorted(found.typed):
            self._look_again(path)

    def _trees_before(self, before: WorkspaceTree) -> list[WorkspaceTree]:
        """Where workspaces may be: at `before`, some at a commit that was never finished and that this one does not
        follow from."""
        return [before, *map(self._site.trees.at, self._target.left)]

    def release(self) -> ChangeSet:
        """Write what a proposed commit comes to."""
        for changes in self._writes.released():
            self._write(changes)
        if self._going:
            self._take_away(self._going)
        return self._finish()

    # -- what others do before the rest of it

    def bring(self, path: str) -> Earlier:
        """Has a workspace pass this step now, for who overtakes it."""
        if path in self._going or self._kept.of(path) is not None:
            return Earlier.WAITS
        if path not in self._pending:
            return Earlier.PAST
        if not self._expected.is_there(path):
            return Earlier.WAITS
        while path in self._pending:
            self._turns.take(path)
            self._settle()
        return Earlier.BROUGHT

    @property
    def kept(self) -> dict[str, CommitRef]:
        """See Target, as it is now."""
        return self._kept.tops

    def settle(self) -> None:
        """What is judged stands in the store from here on."""
        self._settle()

    def overtaken(self, commit: CommitRef) -> None:
        """Some workspaces are at a commit that comes after this one."""
        self._passing.add(commit)
        self._world.refresh()
        self._siblings.forget()

    def _is_put_off(self, _path: str) -> bool:
        """Whether a workspace is not judged in this step, but later."""
        return False

    # -- what goes

    def _take_away(self, going: Iterable[str]) -> None:
        self._ends_kept = True
        self._settle()
        self._recheck(self._takings.take(going, self.done))
        self._going = frozenset()

    def _new_guard(self) -> Guard | None:
        target, site, repo = self._target, self._site, self._site.trees.repositories.own
        if target.limits is None:
            return None
        return Guard(
            site.store, repo, site.sources, site.catalog, target.limits.objects, self._world.before,
            self._served, target.moment.commit, target.limits.since,
        )  # fmt: skip

    def _removals(self, removed: set[str], here: Touched) -> list[str]:
        """Of workspaces that are in the commit no more the paths of those that go. Those that have to be allowed first
        stay, and say so. `here`: what it touches."""
        limits = self._target.limits
        if self._guard is None or limits is None:
            return list(removed)
        cases, allows = self._cases, bool(self._target.admission.allows)
        removals = Removals(
            self._guard,
            self._world.record,
            limits.workspaces,
            self._moves.why,
            cases.barred,
            allows=allows,
            theirs=cases.allowed_there,
            is_lost=self._kept.is_lost,
        )
        # What leaves is allowed to: that a commit brought its directory back for a while changes nothing.
        leaving = self._leavers.paths

        def is_there(path: str) -> bool:
            return path in leaving or cases.is_there(path)

        return [*self._kept.judge(removed - leaving, here, is_there, removals), *(removed & leaving)]

    def _allowed(self) -> Iterator[str]:
        """The workspaces that are held for a deletion which the commit allows, or for what it allows others to have
        touched."""
        yield from (path for path in self._target.admission.allows if self._cases.find(path) is not None)
        hears = self._way.hears and not self._way.alone
        said = self._guard.said() if self._guard is not None and hears else ()
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

    # -- those that are like others

    def _may_be_alike(self) -> bool:
        return self._siblings.are_possible and not (self._kept.tops or self._moves.are_there or self._leavers.paths)

    def _stamp(self, some: list[str]) -> list[str]:
        """Has those of some workspaces that are like others have what these have: they need no turn. Who is left."""
        pending, others = self._pending, (self._forced, self._attempts)
        may_be = [path for path in some if path in pending and not any(path in each for each in others)]
        for op in self._siblings.stamped(may_be, self._waits_in):
            paths = [path for path, _ in op.rows]
            for path in paths:
                del pending[path]
            self._world.appeared(op.rows)
            self.done.add_alike(op)
            self._cases.forget_all(paths)
            if self._writes.keeps_back:
                for changes in each_of(op):
                    self._writes.keeps(changes)
            else:
                self._again(self._writes.add_alike(op))
            self._progress(self.done.judged)
        left = [path for path in some if path in pending]
        if len(left) < len(some):
            self.pause()
        return left

    def _waits_in(self, path: str) -> bool:
        """Whether a workspace, or any that it stands in, waits to be judged."""
        at: str | None = path
        while at is not None:
            if at in self._pending:
                return True
            at = paths.parent(at)
        return False

    # -- judging, when it is a workspace's turn

    def _waits(self, path: str) -> bool:
        return path in self._pending or (self._all and not self._world.is_judged(path))

    def _judge_now(self, path: str) -> bool | Needs:
        """Judges a workspace; whether it is good, or whom it needs, when it waits still."""
        if self._leavers.in_the_way(path):
            return self._wait_for(path)
        if self._world.standing(path) is None and self._moves.waits(path):
            self._pending.pop(path, None)
            self._world.gone(path)
            return True
        if self._kept.is_back(path) or (self._cases.find(path) is None and path not in system.shipped_workspaces()):
            self._pending.pop(path, None)
            record = self._world.record(path)
            if record is None:
                self._world.gone(path)
            else:
                self._world.moved(record)  # it goes, or stays as it is: nothing of it follows from this commit
            return True
        if self._is_past(path):
            return self._pass(path)
        was_there = not self._world.is_judged(path) and self._was_ahead(path)
        case = self._case(path)
        verdict = self._verdict(case)
        if isinstance(verdict, Needs):
            return verdict
        self._pending.pop(path, None)
        self._verdicts[path] = case, verdict
        if verdict.alone:
            self._siblings.learn(case, verdict)
        self._world.moved(verdict.record)
        if was_there:
            self._tell_of(path)
        return not verdict.problems

    def _wait_for(self, path: str) -> bool:
        """A commit may have a workspace where another is in the way; whether nothing is wrong with that."""
        self._pending.pop(path, None)
        place = self._target.tree.find(path) if path not in self._target.absent else None
        changes = self._leavers.in_place_of(path, place, self._cases.asked)
        if changes is None:
            return True
        self.done.add(changes)
        if changes and not self._writes.keeps(changes):
            self._write(changes)
        return not changes.why

    def _is_past(self, path: str) -> bool:
        """Whether a workspace is at the step's commit already, or at one that follows it. Judging it here would take it
        back, and what the later commit brought with it."""
        at = NONE if self._world.is_judged(path) else self._passed(path)
        again = path in self._forced or path in self._provided
        return bool(at) and (at != self._target.moment.commit or not again)

    def _passed(self, path: str) -> CommitRef:
        """Where a workspace is that is at the step's commit or beyond it; NONE if it is not."""
        record = self._world.record(path) if self._passing else None
        return record.past if record is not None and record.past in self._passing else NONE

    def _was_ahead(self, path: str) -> bool:
        """Whether a workspace is where this step leads, or at a commit that was left: nobody need have heard of it."""
        record = self._world.record(path)
        return bool(self._passed(path)) or (record is not None and record.past in self._target.left)

    def _pass(self, path: str) -> bool:
        """Leaves it where it is; whether it is good."""
        self._pending.pop(path, None)
        record = self._world.record(path)
        assert record is not None
        self._world.moved(record)
        self._tell_of(path)
        return not record.errors

    def _tell_of(self, path: str) -> None:
        """Who follows from a workspace that was at the commit before this step may not have heard of it."""
        record = self._world.record(path)
        assert record is not None
        self._tell(path, self._hearers.types_of(record, {*self._target.passed, *self._target.left}))

    def _stand(self, judged: Iterable[str]) -> None:
        """The verdicts on these workspaces count from now on."""
        for path in judged:
            case, verdict = self._verdicts.pop(path, (None, None))
            if verdict is None:
                continue
            self.done.add(verdict.changes)
            self._cases.forget(path)
            if case is not None and case.record is not None and is_unsettled(case.record):
                self._look_below(case, verdict)
            if verdict.changes:
                self._publish(verdict)
            else:
                self._world.written(path)
            if verdict.again:
                self._returned.append(path)
            if case is not None and self._turns_others(case, verdict):
                self._turned.add(path)
            self._progress(self.done.judged)

    def _turns_others(self, case: Case, verdict: Verdict) -> bool:
        """Whether those that are held may be so for a mistake of this one from now on, or not any more. In a step over
        all it came before them, unless it is judged once more."""
        if not self._way.tells or case.record is None:
            return False
        if bool(case.record.errors) != bool(verdict.problems):
            return True
        own = case.path in self._forced if self._all else case.path not in self._provided
        return bool(verdict.problems) and own

    def _look_below(self, case: Case, verdict: Verdict) -> None:
        """What stands below a workspace that was to be another one is made once it is settled which it is."""
        if case.directory is not None and not is_unsettled(verdict.record):
            below = (each.path for each in case.tree.workspaces(case.directory))
            self._pending.update(dict.fromkeys(path for path in below if path != case.path))

    def _offers(self, path: str) -> Offers:
        return self._judge.offers(self._case(path))

    def _look_again(self, path: str) -> None:
        """Have a workspace judged again, all of it. Those that never come to rest (each good only if the other is not)
        are left as they are."""
        self._turns.forget(path)
        self._again_as_one_of(self._forced, path)

    def _again_as_one_of(self, those: set[str], path: str) -> None:
        if path in self._target.staying:
            return
        if self._passed(path) not in (NONE, self._target.moment.commit):
            self.done.later.add(path)
            return
        if self._verdicts.pop(path, None) is not None:
            self._world.forget(path)
        self._rounds[path] = self._rounds.get(path, 0) + 1
        if self._rounds[path] > _ROUNDS:
            log.error("workspace %s follows from itself: it stays as it is", path)
            return
        those.add(path)
        self._pending.setdefault(path)

    def _case(self, path: str) -> Case:
        earlier = self._verdicts.get(path)
        if earlier is not None:
            return earlier[0]  # the verdict on it did not stand
        again = self._world.is_judged(path) or path in self._attempts
        return self._cases.make(path, again=again, forced=path in self._forced, provided=path in self._provided)

    def _verdict(self, case: Case) -> Verdict | Needs:
        try:
            return self._judge.judge(case)
        except (RepositoryError, MemoryError, PutOff):
            raise
        except Exception as error:
            # A fault of this program in one workspace's content stays that workspace's.
            log.error("workspace %s could not be judged at %s\n%s", case.path, case.moment.commit, described(error))
            return self._judge.refuse(case)

    # -- writing, and what follows from it

    def _publish(self, verdict: Verdict) -> None:
        if not self._writes.keeps(verdict.changes):
            self._write(verdict.changes)

    def _write(self, changes: WorkspaceChanges) -> None:
        path, target = changes.path, self._target
        self._ends_kept = self._ends_kept or keptschemas.may_end(changes)
        at_served = target.moment.commit == target.served
        if changes.provides and self._way.tells and not self._way.fills and at_served:
            changes.also = [*changes.also, untold.said(path)]
            self._untold.add(path)
        self._again(self._writes.add(changes))
        if changes.provides:
            self._settle()
            self._world.provides_anew(path)
            self._siblings.forget()
            if self._way.tells:
                self._tell(path, changes.written())

    def _tell_who_missed(self) -> None:
        """What a step that was cut off did not come to."""
        if not self._way.tells or self._way.alone or self._writes.keeps_back:
            return
        for path in untold.standing(self._site.store):
            self._untold.add(path)
            record = self._world.record(path)
            if record is not None:
                self._tell(path, self._hearers.types_of(record))

    def _tell(self, provider: str, written: Iterable[Key]) -> None:
        """Has whoever follows from what a workspace offers judged again. In a step over all it came before its types'
        workspaces, and root before all."""
        self._recheck(self._hearers.taking(provider))
        if not self._all:
            for path in self._hearers.typed(provider, written):
                self._look_again(path)
            self._recheck(self._hearers.unscheduled(provider))

    def _recheck(self, consumers: Iterable[str]) -> None:
        """Have workspaces follow what others provide by now."""
        for path in consumers:
            if self._world.record(path) is not None:
                self._again_as_one_of(self._provided, path)

    def _settle(self) -> None:
        """Wait until everything is on disk."""
        self._again(self._writes.settle())

    def _again(self, conflicting: Iterable[WorkspaceChanges]) -> None:
        """Workspaces that somebody else wrote to meanwhile are judged again."""
        for changes in conflicting:
            path = changes.path
            self.done.withdraw(changes)
            self._attempts[path] = self._attempts.get(path, 0) + 1
            if self._attempts[path] > _RETRIES:
                raise RuntimeError(f"workspace {path} is written to so often that a commit cannot be applied")
            self._world.forget(path)
            self._pending.setdefault(path)

    def _finish(self) -> ChangeSet:
        self._settle_all()
        if self._target.recorded is None and self._ends_kept:
            for path in keptschemas.let_go(self._site.store):
                record = self._world.record(path)
                if record is not None and record.errors:
                    self._look_again(path)
            self._settle_all()
        self._judge_removals_again()
        untold.told(self._site.store, self._untold)
        self.done.kept = self._kept.tops
        self.done.refused |= self._kept.refused
        return self.done

    def _judge_removals_again(self) -> None:
        """Of those that are back, and whose directories went before they were."""
        came_back = self._kept.came_back()
        if not came_back or self._guard is None or self._writes.keeps_back:
            return
        going = self._removals(set(), Touched())
        for path in self._kept.paths():
            if any(paths.is_within(path, top) for top in came_back):
                self._look_again(path)
        self._settle_all()
        if going:
            self._take_away(going)
            self._settle_all()

    def _settle_all(self) -> None:
        """Until nobody waits to be judged."""
        self._settle()
        while self._pending or self._writes or self._returned or self._turned:
            if not self._pending:
                turned, self._turned = self._turned, set()
                self._recheck(self._hearers.waiting(turned))
                returned, self._returned = self._returned, []
                for path in returned:
                    self._look_again(path)
            for path in sorted(self._pending, key=paths.depth):
                self._turns.take(path)
                self.pause()
            self._settle()


def _weakly(method: Callable[P, R]) -> Callable[P, R]:
    """A method of a stepper, for what that holds itself: in a circle all that a load read would stay until garbage is
    looked for."""
    assert isinstance(method, MethodType)
    whose, function = ref(method.__self__), method.__func__

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        found: R = function(whose(), *args, **kwargs)
        return found

    return call
