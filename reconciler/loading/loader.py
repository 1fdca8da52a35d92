"""The desired branch into the store: the first load, recovery, and every commit after that.

Called by the reconciler process whenever the branch may have moved. Git is the truth and the store its cache: an empty
store is filled from the commit that the status branch says was reconciled (with no status branch: from the head), then
follows the first-parent chain to the head, judging each commit in turn. A commit that cannot be taken as a whole (a
broken treeplane.yaml, a missing workspace root) is held for everybody and deletes nothing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from apiserver.model import clock
from apiserver.model.commits import NONE, CommitRef
from apiserver.model.keys import Key
from apiserver.registry import tree
from apiserver.registry.catalog import Catalog
from apiserver.registry.intents import Intent
from apiserver.registry.tree import FleetRecord
from apiserver.storage.protocol import Store
from reconciler.layout.errors import BadFile, LayoutError
from reconciler.layout.tree import WorkspaceTree
from reconciler.loading import departure, vacated
from reconciler.loading.admission import FREE, Admission
from reconciler.loading.ahead import Ahead
from reconciler.loading.asked import Proposed
from reconciler.loading.case import was_served
from reconciler.loading.changeset import ChangeSet
from reconciler.loading.entrance import Entrance
from reconciler.loading.firstload import FirstLoad, Making, Progress, is_lost, reader
from reconciler.loading.grafting import Grafting, TakeStep, directories
from reconciler.loading.heads import BranchSettings
from reconciler.loading.identities import Identities
from reconciler.loading.leaving import told_anew
from reconciler.loading.moment import Moment, Moments
from reconciler.loading.overtaking import Makes, Overtaking
from reconciler.loading.pauses import Pauses
from reconciler.loading.renewal import Judges, Renewal
from reconciler.loading.returning import Returning
from reconciler.loading.site import SeenHead
from reconciler.loading.sources import Sources
from reconciler.loading.step import Carry, FindKeys, Secrets
from reconciler.loading.steppers import Steppers
from reconciler.loading.steps import Stepper
from reconciler.loading.trees import Trees
from reconciler.loading.unsealing import SHOWN
from reconciler.loading.vouching import Vouching
from reconciler.loading.ways import COMMIT, PROPOSAL, RECHECK, RECOVERY, RENEWAL, SHIPPING, Way
from reconciler.loading.whole import Whole
from reconciler.plan.deletions import RefusedDeletion
from reconciler.rendering.rendering import NOWHERE, Renders
from reconciler.repository.repositories import Repositories
from reconciler.statusbranch.recorded import RecordedFleet

log = logging.getLogger(__name__)

_MAIN = BranchSettings()


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a call of `load` or `overtake` did. `problems`: why the whole commit is held ([] if it is not); `steps`:
    what they came to; `waits_for`: the commit that has to be there before all of it is (NONE: none)."""

    head: CommitRef
    problems: tuple[LayoutError, ...] = ()
    steps: tuple[ChangeSet, ...] = ()
    waits_for: CommitRef = NONE


@dataclass(frozen=True, slots=True)
class Proposal:
    """A commit on top of the served one that is judged and not written: `held` says who would not take it, `faults` who
    of them for a fault of this program. `take` writes it, once it is the branch's. `refused`: of those that are held,
    the deletions that have to be allowed. `later`: that cannot be told before a commit that is under way is there."""

    held: Mapping[str, list[LayoutError]]
    faults: Collection[str]
    take: Callable[[], None]
    refused: Mapping[str, RefusedDeletion] = field(default_factory=dict)
    later: bool = False


class BesideStore(NamedTuple):
    """What a loader has beside the store, for one whose work counts for nothing. See Loader."""

    identities: Identities
    secrets: Secrets
    carry: Carry
    keys: FindKeys
    vouching: Vouching | None = None


_LATER = Proposal({}, (), lambda: None, later=True)


def _proposal(step: ChangeSet, take: Callable[[], None]) -> Proposal:
    return Proposal(step.held, step.faults, take, step.refused)


Judged = ChangeSet | tuple[LayoutError, ...]
"""What a commit comes to, or why it is held as a whole."""


class Loader:
    """One fleet's loader. Not thread-safe: one thread calls `load`.

    `meanwhile` is called by that thread while a commit is loaded, between two workspaces, for at most half of the time:
    it may call `overtake` and `propose`. `steppers`: with what all its steps share. `keys`: by default encrypted files
    are shown as they stand, for a store that nobody is served from. `renders`: for directories that are rendered.
    """

    def __init__(
        self,
        store: Store,
        repositories: Repositories,
        identities: Identities,
        secrets: Secrets,
        branch: BranchSettings = _MAIN,
        trees: Trees | None = None,
        keys: FindKeys = lambda _: SHOWN,
        renders: Renders = NOWHERE,
    ) -> None:
        self.meanwhile: Callable[[], None] | None = None
        self._words = "commit %s in %.0f ms: %s"
        self._over: Overtaking | None = None
        self._overtook: dict[CommitRef, ChangeSet] = {}
        self.pauses = Pauses()
        self._store = store
        self._repo = repositories.own
        self._branch = branch
        self._trees = trees or Trees(repositories)
        self._moments = Moments(repositories)
        self.sources = Sources(renders, repositories)
        self.sources.directories_in = self._trees.directories_in
        self._catalog = Catalog(store)
        self._whole = Whole(store, repositories.own, self._trees, branch.status)
        self._trees.known = directories(store)
        heads: dict[str, SeenHead] = {}
        self._grafting = Grafting(store, self._trees, self.sources, self._whole, heads)
        self.entrance = Entrance(store, self._whole, branch, self.sources, self._trees)
        self.steppers = Steppers(
            store, self._repo, self._trees, self._moments, self._whole, self.entrance, self.sources, self._catalog,
            identities, secrets, keys, heads, branch.most_objects,
        )  # fmt: skip
        judges = Judges(lambda path: self._judge_again(RENEWAL, (path,)), partial(self._judge_again, SHIPPING))
        self._renewal = Renewal(store, judges)

    def load(
        self, head: CommitRef, recorded: RecordedFleet | None = None, progress: Progress = lambda _: None
    ) -> Loaded:
        """Bring the store to `head`. `recorded`: the status branch, looked at only while the store is empty."""
        first = self.begin(head, recorded, progress)
        if first.problems:
            return first
        steps = [*first.steps, *self._in_sources(self._grafting.finish)]
        fleet = tree.fleet(self._store)
        gone = self.entrance.route(fleet, head)
        problems = gone.problems
        if problems:
            self._whole.hold(fleet, problems)
            return Loaded(head, problems, tuple(steps))
        if gone.leaves:
            fleet = self.entrance.leave(fleet, head)
        later, skipped = set[str](), list[CommitRef]()
        # Of a commit that was on its way when the branch went back to what is served, some workspaces are to go back.
        then = [*gone.commits] or [fleet.commit] * bool(fleet.arriving)
        while then:
            commit = then.pop(0)
            admission = self.entrance.admission(fleet, commit, then, skipped)
            if admission.whole:
                self._whole.hold(fleet, admission.whole)
                return Loaded(head, admission.whole, tuple(steps))
            fleet, step_or_problems = self._advance(fleet, commit, then, later, admission=admission)
            if isinstance(step_or_problems, ChangeSet):
                problems = ()
                later |= step_or_problems.later
                steps.append(step_or_problems)
                skipped = []
            else:
                problems = step_or_problems
                skipped.append(commit)
        return Loaded(head, problems, (*steps, *self._in_sources(self._grafting.follow)))

    def begin(self, head: CommitRef, recorded: RecordedFleet | None, progress: Progress = lambda _: None) -> Loaded:
        """Fills a store that is empty: as the status branch has it, with what was past the commit that it names, or, in
        want of one, from `head`."""
        fleet = tree.fleet(self._store)
        self._trees.stand(fleet)
        if fleet.loaded:
            return Loaded(head)
        making = Making(
            self._store,
            self._repo,
            self._trees,
            self._whole,
            self._branch,
            self.steppers.stepper,
            self._moments,
            self.entrance.gate,
        )
        first = FirstLoad(making, recorded)
        begun = first.begin(head, fleet)
        if isinstance(begun, tuple):
            return Loaded(head, begun)
        fleet, steps = first.fill(begun, progress)
        self._trees.known = directories(self._store)
        self._trees.stand(fleet)
        return Loaded(head, (), tuple(steps))

    def overtake(self, head: CommitRef) -> Loaded | None:
        """While a commit is loaded: small ones on top of it go before the rest of it, up to `head`. What is known of
        that by now, where it is news."""
        found = self._over.follow(head) if self._over is not None else None
        return Loaded(head, (), found.steps, found.waits_for) if found is not None else None

    def is_past(self, path: str) -> bool:
        """Whether a workspace is where `tip` leads it, so that a write to it can be made a commit."""
        return self._over is None or self._over.is_past(path)

    @property
    def is_under_way(self) -> bool:
        """Whether a commit is being loaded, so that others can only overtake it."""
        return self._over is not None

    def tip(self) -> FleetRecord:
        """The fleet as it is served, or will be when all is there that is on its way: what comes next comes on top."""
        return self._over.fleet if self._over is not None else tree.fleet(self._store)

    def tree_at(self, fleet: FleetRecord) -> WorkspaceTree:
        """The workspaces of the served commit."""
        self._trees.stand(fleet)
        return self._trees.at(fleet.commit)

    def take(self, commit: CommitRef) -> Loaded:
        """From what is served to a commit in one difference, whatever lies between."""
        _, done = self._advance(tree.fleet(self._store), commit)
        return Loaded(commit, (), (done,)) if isinstance(done, ChangeSet) else Loaded(commit, done)

    def recheck(self, paths: Iterable[str] = ()) -> ChangeSet:
        """Judge what does not follow from a commit: `paths` (their Secrets changed), and what stands in the place of
        workspaces that have gone (vacated). In step already, nothing is written."""
        fleet, gone, also = tree.fleet(self._store), vacated.standing(self._store), {*paths}
        for path in gone:
            also |= self._standing_at(fleet, path)
        step = self._judge_again(RECHECK, also)
        vacated.judged(self._store, gone)
        for each in self._in_sources(self._grafting.follow):
            step = step.then(each)
        fleet = tree.fleet(self._store)
        self._whole.note(replace(fleet, url=self._branch.url, branch=self._branch.name, kept=step.kept))
        return step

    def look_again(self, paths: Collection[str]) -> ChangeSet:
        """Judges workspaces that may have waited for something that has gone. One that leaves goes with the last that
        it waited for. What a commit has in the place of one that is no more is judged then."""
        fleet, also = (
            tree.fleet(self._store),
            {*paths, *(each for path in paths for each in self._grafting.below(path))},
        )
        for path in sorted(paths, key=lambda each: each.count(":"), reverse=True):
            record = tree.workspace_at(self._store, path)
            if record is not None and path in fleet.kept:
                ops = told_anew(self._store, record)
                self._store.write(*ops).result() if ops else None
            if record is None:
                also |= self._standing_at(fleet, path)
            elif record.leaves:
                departure.go_on(self._store, record, clock.now())
        return self.recheck(also)

    def _standing_at(self, fleet: FleetRecord, path: str) -> set[str]:
        """The workspace that the served commit has at a path, and those below it."""
        here = self.tree_at(fleet)
        place = here.find(path)
        return {each.path for each in here.workspaces(place)} if place is not None else set()

    def renew(self, is_wanted: Callable[[], bool] = lambda: False) -> bool:
        """Writes what ships with this version where another one shipped something else, workspace by workspace, until
        `is_wanted` says that there is other work; whether all is written."""
        return self._renewal.go_on(is_wanted)

    def _in_sources(self, go: Callable[[TakeStep], ChangeSet | None]) -> Iterator[ChangeSet]:
        """Has workspaces in tenants' repositories follow what those above them were judged by."""

        def take(fleet: FleetRecord, here: WorkspaceTree, before: WorkspaceTree, also: Collection[str]) -> ChangeSet:
            moment, limits = Moment.now(fleet.commit), self._whole.limits(fleet)
            return self.steppers.stepper(
                COMMIT, fleet, fleet.commit, limits=limits, moment=moment, here=here
            ).difference(before, also)

        found = go(take)
        if found is not None:
            yield found

    def _judge_again(self, way: Way, paths: Iterable[str]) -> ChangeSet:
        """Judges workspaces at what is served of them. No commit has them say something else, so that bears the real
        time."""
        fleet, also = tree.fleet(self._store), {*paths}
        self._trees.stand(fleet)
        # Of a load that did not come to its end some are beyond what is served: they are judged where they are.
        places = dict.fromkeys(also, fleet.commit) | dict(self._beyond(fleet, also))
        limits, step = self._whole.limits(fleet), ChangeSet()
        for commit in (*({*places.values()} - {fleet.commit}), fleet.commit):
            there = [path for path in also if places[path] == commit]
            stepper = self.steppers.stepper(way, fleet, commit, limits=limits, moment=Moment.now(commit))
            step = stepper.difference(self._trees.at(commit), there)
        return step

    def _beyond(self, fleet: FleetRecord, some: Iterable[str]) -> Iterator[tuple[str, CommitRef]]:
        """Which of some workspaces are beyond the served commit, and where."""
        for path in some if fleet.arriving else ():
            record = tree.workspace_at(self._store, path)
            if record is not None and record.past in fleet.arriving:
                yield path, record.past

    def recover(
        self, fleet: FleetRecord, recorded: RecordedFleet, paths: Collection[str], also: Collection[str]
    ) -> ChangeSet:
        """Judge workspaces that the store lacks, as a first load from the status branch does: at their recorded
        commits, with what is recorded of them. `also`: those that may have been past the commit that is named, and need
        not stand in it. Nothing is noted of the fleet."""
        self._trees.stand(fleet)
        here = self._trees.at(recorded.source)
        find = reader(recorded, here)
        for path in paths:
            place = here.find(path)
            if place is not None and not was_served(find(path, place.directory)):
                here.find_twins(path)  # it is judged as it stands now
        ahead = Ahead(recorded, self._trees)
        stepper = self.steppers.stepper(RECOVERY, fleet, recorded.source, recorded=recorded, absent=ahead.absent(find))
        step = stepper.difference(here, paths)
        Returning(self._store, fleet, recorded, self._moments).take(also)
        ahead.take(self._store, fleet, self.steppers.stepper, also)
        return step

    def propose(self, commit: CommitRef, intents: Mapping[Key, Intent]) -> Proposal:
        """Judge a commit that was made of `intents`, whose parent is `tip`'s."""
        if self._over is not None:
            found = self._over.propose(commit, intents)
            return _proposal(found[0], found[1]) if found is not None else _LATER
        fleet = tree.fleet(self._store)
        self._trees.stand(fleet)
        here = self._trees.at(commit)
        limits = self._whole.limits(fleet)
        stepper = self.steppers.stepper(PROPOSAL, fleet, commit, limits=limits, asked=Proposed(intents, self._store))
        step = stepper.difference(self._trees.at(fleet.commit))

        def take() -> None:
            self._whole.arrive(fleet, commit)
            stepper.release()
            self._whole.note(replace(fleet, commit=commit, arriving=(), claims=here.claims))

        return _proposal(step, take)

    def aside(self, store: Store, repositories: Repositories, around: BesideStore) -> Loader:
        """One that does as this one does, to a store that nobody else sees. It may be made and used by another thread
        than loads here."""
        branch = replace(self._branch, keep=BranchSettings().keep, vouching=around.vouching)
        trees = self._trees.aside(repositories)
        renders = self.sources.renders
        out = Loader(store, repositories, around.identities, around.secrets, branch, trees, around.keys, renders)
        theirs = out.sources.theirs = self.sources.theirs
        remotes = self.steppers.remotes
        if remotes is not None:
            out.steppers.remotes = replace(
                remotes,
                patient=True,
                is_rendered=lambda _, __, found: all(theirs.is_at_hand(each.request) for each in found),
            )
        out.steppers.carry = around.carry
        out._words = "commit %s is judged, which took %.0f ms: %s"
        return out

    # -- commits -----------------------------------------------------------------------------------------------------

    def _advance(
        self,
        fleet: FleetRecord,
        commit: CommitRef,
        then: list[CommitRef] | None = None,
        also: Iterable[str] = (),
        *,
        admission: Admission = FREE,
    ) -> tuple[FleetRecord, Judged]:
        """`then`: the commits that come after it, to which those are added that overtake it; None: none may. `also`:
        workspaces to judge beside those that it touches. `admission`: what it may touch."""
        config, problems = self._whole.next_config(fleet, commit)
        if config is None:
            self._whole.hold(fleet, problems)
            return tree.fleet(self._store), problems
        began = time.perf_counter()
        asked, ahead = self.steppers.asked(), frozenset((commit, *(then or ())))
        left = tuple(each for each in fleet.arriving if each not in ahead)
        self._grafting.carried(commit)
        stepper = self.steppers.stepper(
            COMMIT,
            fleet,
            commit,
            limits=self._whole.limits(fleet),
            asked=asked,
            ahead=ahead,
            left=left,
            admission=admission,
        )
        stored = self._whole.arrive(fleet, commit, admission)
        coming = replace(stored, commit=commit, writes=config.writes)
        try:
            with self._overtaken(stored, coming, stepper, then) as over:
                step = stepper.difference(self._trees.at(fleet.commit), also)
        except BadFile as bad:
            self._trees.settle()
            self._whole.hold(fleet, bad.errors)
            return tree.fleet(self._store), tuple(bad.errors)
        log.info(self._words, f"{commit:.10}", 1000 * (time.perf_counter() - began), step)
        step = self._overtook.pop(commit, ChangeSet()).then(step)
        lost = fleet.lost if fleet.lost and self._is_lost(fleet.lost) else NONE
        claims = self._whole.claims(self._trees.at(commit), step.kept)
        arriving = tuple(each for each in over.stored.arriving if each in over.then)
        fleet = replace(
            fleet,
            commit=commit,
            arriving=arriving,
            admitted={c: found for c, found in over.stored.admitted.items() if c in map(str, arriving)},
            error="",
            writes=config.writes,
            claims=claims,
            kept=step.kept,
            lost=lost,
        )
        if fleet.grafts:
            fleet = replace(fleet, grafts=self._grafting.remaining(fleet, self._grafting.moved(fleet.grafts)))
        self._trees.settle()
        self._whole.note(fleet)
        return fleet, step

    @contextmanager
    def _overtaken(
        self, stored: FleetRecord, coming: FleetRecord, stepper: Stepper, then: list[CommitRef] | None
    ) -> Iterator[Overtaking]:
        makes = Makes(self._repo, self._trees, self._whole, self.steppers.overtaker, self.entrance.ahead)
        over = Overtaking(makes, stored, coming, stepper, then if then is not None else [])
        if then is None or self.meanwhile is None:
            yield over
            return
        stepper.pause = partial(self.pauses.take, self.meanwhile)
        self._over = over
        try:
            yield over
        finally:
            self._over = None
            for commit, found in over.done.items():
                self._overtook[commit] = self._overtook.get(commit, ChangeSet()).then(found)

    def _is_lost(self, status: CommitRef) -> bool:
        return is_lost(self._store, RecordedFleet(self._repo, status.id), self._trees)
