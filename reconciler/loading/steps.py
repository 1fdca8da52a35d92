"""One commit into the store: every workspace that it touches is judged and, if good, moved; the others do not notice.

Called by loader. Order: parents before children, providers before consumers, removals last and deepest first. Writes of
one workspace are one transaction; those of many are on their way together, and a step ends when all are on disk.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum
from types import MethodType
from typing import ParamSpec, TypeVar
from weakref import ref

from apiserver.model import paths
from apiserver.model.commits import CommitRef
from apiserver.model.failures import described
from apiserver.model.keys import Key
from reconciler.layout.compare import Touched
from reconciler.layout.tree import WorkspaceTree
from reconciler.loading import keptschemas, untold
from reconciler.loading.case import Case, Needs, Verdict
from reconciler.loading.changeset import ChangeSet, WorkspaceChanges, each_of
from reconciler.loading.concerns import Concerns, WaitingAndGoing
from reconciler.loading.moves import is_unsettled
from reconciler.loading.offers import Offers
from reconciler.loading.relocation import Relocation
from reconciler.loading.site import Site
from reconciler.loading.step import StepTarget
from reconciler.loading.stepparts import StepParts
from reconciler.loading.tojudge import ToJudge
from reconciler.loading.turns import Steps, Turns
from reconciler.loading.ways import Way
from reconciler.loading.world import PutOff
from reconciler.plan import system
from reconciler.repository.errors import RepositoryError

log = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")

_PIECE = 64
"""Workspaces among which those that are alike are looked for: others are served after so many at the latest."""


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
        self._site, self._target, self._way = site, target, way
        self._progress = progress
        self._going: frozenset[str] = frozenset()
        self._returned: list[str] = []
        """Who is back where it was. It goes on once all are back who follow from it: what they have counts for it."""
        self._turned: set[str] = set()
        """Those of which others that are held may say something else by now (Hearers.waiting)."""
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
        parts = StepParts.of(site, target, way, self._turns)
        self._world, self._hearers, self._leavers = parts.world, parts.hearers, parts.leavers
        self._kept, self._cases, self._siblings = parts.kept, parts.cases, parts.siblings
        self._moves, self._guard, self._judge = parts.moves, parts.guard, parts.judge
        self._expected, self._writes, self._takings = parts.expected, parts.writes, parts.takings
        self.done = ChangeSet()
        self._to_judge = ToJudge(target, self._world, self._turns, self.done.later)
        self._concerns = Concerns(site, target, way, parts, self._to_judge)

    def everything(self) -> ChangeSet:
        """All workspaces of the commit: a first load, or a check of all."""
        self._to_judge.everyone = True
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
        self._to_judge.add(waiting)
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

    def _concerned(self, before: WorkspaceTree, also: Iterable[str]) -> WaitingAndGoing:
        found = self._concerns.find(before, also)
        self.done.renames = self._moves.renames
        return found

    def _relocate(self) -> None:
        """Has those that move be in their new places, where they are judged then, and others hear of it."""
        target, world = self._target, self._world
        relocation = Relocation(self._site.store, target.moment.commit, self._directory, world.of_types, target.carry)
        places = relocation.take(self._moves.found, world, self.done)
        declared = [new for new in places.values() if not self._leavers.is_stored(new)]
        self._to_judge.forced.update(declared)
        self._to_judge.add(declared)
        self._concerns.recheck_who_names({*places, *places.values()})

    def _directory(self, path: str) -> str:
        place = self._cases.find(path)
        return place.directory if place is not None else ""

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
        if path not in self._to_judge:
            return Earlier.PAST
        if not self._expected.is_there(path):
            return Earlier.WAITS
        while path in self._to_judge:
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
        self._to_judge.passes(commit)
        self._world.refresh()
        self._siblings.forget()

    def _is_put_off(self, _path: str) -> bool:
        """Whether a workspace is not judged in this step, but later."""
        return False

    # -- what goes

    def _take_away(self, going: Iterable[str]) -> None:
        self._ends_kept = True
        self._settle()
        self._to_judge.follow(self._takings.take(going, self.done))
        self._going = frozenset()

    # -- those that are like others

    def _may_be_alike(self) -> bool:
        return self._siblings.are_possible and not (self._kept.tops or self._moves.are_there or self._leavers.paths)

    def _stamp(self, some: list[str]) -> list[str]:
        """Has those of some workspaces that are like others have what these have: they need no turn. Who is left."""
        pending, others = self._to_judge, (self._to_judge.forced, self._to_judge.attempted)
        may_be = [path for path in some if path in pending and not any(path in each for each in others)]
        for op in self._siblings.stamped(may_be, pending.waits_in):
            paths = [path for path, _ in op.rows]
            for path in paths:
                pending.drop(path)
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

    # -- judging, when it is a workspace's turn

    def _waits(self, path: str) -> bool:
        return self._to_judge.waits(path)

    def _judge_now(self, path: str) -> bool | Needs:
        """Judges a workspace; whether it is good, or whom it needs, when it waits still."""
        if self._leavers.in_the_way(path):
            return self._wait_for(path)
        if self._world.standing(path) is None and self._moves.waits(path):
            self._to_judge.drop(path)
            self._world.gone(path)
            return True
        if self._kept.is_back(path) or (self._cases.find(path) is None and path not in system.shipped_workspaces()):
            self._to_judge.drop(path)
            record = self._world.record(path)
            if record is None:
                self._world.gone(path)
            else:
                self._world.moved(record)  # it goes, or stays as it is: nothing of it follows from this commit
            return True
        if self._to_judge.is_past(path):
            return self._pass(path)
        was_there = not self._world.is_judged(path) and self._to_judge.was_ahead(path)
        case = self._case(path)
        verdict = self._verdict(case)
        if isinstance(verdict, Needs):
            return verdict
        self._to_judge.drop(path)
        self._to_judge.verdicts[path] = case, verdict
        if verdict.alone:
            self._siblings.learn(case, verdict)
        self._world.moved(verdict.record)
        if was_there:
            self._tell_of(path)
        return not verdict.problems

    def _wait_for(self, path: str) -> bool:
        """A commit may have a workspace where another is in the way; whether nothing is wrong with that."""
        self._to_judge.drop(path)
        place = self._target.tree.find(path) if path not in self._target.absent else None
        changes = self._leavers.in_place_of(path, place, self._cases.asked)
        if changes is None:
            return True
        self.done.add(changes)
        if changes and not self._writes.keeps(changes):
            self._write(changes)
        return not changes.why

    def _pass(self, path: str) -> bool:
        """Leaves it where it is; whether it is good."""
        self._to_judge.drop(path)
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
            case, verdict = self._to_judge.verdicts.pop(path, (None, None))
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
        to_judge = self._to_judge
        own = case.path in to_judge.forced if to_judge.everyone else case.path not in to_judge.provided
        return bool(verdict.problems) and own

    def _look_below(self, case: Case, verdict: Verdict) -> None:
        """What stands below a workspace that was to be another one is made once it is settled which it is."""
        if case.directory is not None and not is_unsettled(verdict.record):
            below = (each.path for each in case.tree.workspaces(case.directory))
            self._to_judge.add(path for path in below if path != case.path)

    def _offers(self, path: str) -> Offers:
        return self._judge.offers(self._case(path))

    def _look_again(self, path: str) -> None:
        self._to_judge.again(path)

    def _case(self, path: str) -> Case:
        to_judge = self._to_judge
        earlier = to_judge.verdicts.get(path)
        if earlier is not None:
            return earlier[0]  # the verdict on it did not stand
        again = self._world.is_judged(path) or path in to_judge.attempted
        return self._cases.make(path, again=again, forced=path in to_judge.forced, provided=path in to_judge.provided)

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
        self._to_judge.follow(self._hearers.taking(provider))
        if not self._to_judge.everyone:
            for path in self._hearers.typed(provider, written):
                self._look_again(path)
            self._to_judge.follow(self._hearers.unscheduled(provider))

    def _settle(self) -> None:
        """Wait until everything is on disk."""
        self._again(self._writes.settle())

    def _again(self, conflicting: Iterable[WorkspaceChanges]) -> None:
        """Workspaces that somebody else wrote to meanwhile are judged again."""
        for changes in conflicting:
            self.done.withdraw(changes)
            self._to_judge.attempt(changes.path)

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
        going = self._concerns.removals(set(), Touched())
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
        while self._to_judge or self._writes or self._returned or self._turned:
            if not self._to_judge:
                turned, self._turned = self._turned, set()
                self._to_judge.follow(self._hearers.waiting(turned))
                returned, self._returned = self._returned, []
                for path in returned:
                    self._look_again(path)
            for path in self._to_judge.upcoming():
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
