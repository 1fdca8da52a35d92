"""Small commits that go before the rest of a large one, so that nobody waits for a load.

Made by loader for each commit that it loads, and asked between two workspaces. A commit on top of those that were taken
is taken as far as that is safe: each of its workspaces first goes to where the commits before lead it, and then on; one
that would change what others take (an export, a schema, a type), or that asks for one that does, waits for its commit's
turn. So every workspace passes its own commits in order and sees its providers as of its commit, and all ends as if
nobody had overtaken. When the commit's turn comes, it finds its workspaces where it would bring them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from apiserver.model.commits import NONE, CommitRef, own
from apiserver.model.keys import Key
from apiserver.registry.intents import Intent
from apiserver.registry.tree import FleetRecord
from reconciler.layout.errors import BadFile
from reconciler.layout.fleet import FILE
from reconciler.loading.admission import FREE, Admission
from reconciler.loading.changeset import ChangeSet
from reconciler.loading.overtaker import Overtaker
from reconciler.loading.steps import Earlier, Stepper
from reconciler.loading.trees import Trees
from reconciler.loading.whole import Whole
from reconciler.repository.folder import joined
from reconciler.repository.objects import Repository

log = logging.getLogger(__name__)

_MOST = 1000
"""Workspaces of a commit that goes before others."""


class Makes(NamedTuple):
    """What loader lends. `step` makes one for a fleet and a commit that was made of intents, or of None: it asks who is
    given first to take a workspace past the commits before, and goes by what is given
    last. `comes_in`: what is noted of who stands for a commit, None where that has to be settled when it is its turn;
    it asks the same of the workspaces whose RBAC counts."""

    repo: Repository
    trees: Trees
    whole: Whole
    step: Callable[
        [FleetRecord, CommitRef, Mapping[Key, Intent] | None, Callable[[str], Earlier], Admission], Overtaker
    ]
    comes_in: Callable[[FleetRecord, CommitRef, Callable[[str], bool]], Admission | None]


class Overtook(NamedTuple):
    """`steps`: what commits that went before the rest of another came to so far; `waits_for`: that one, where something
    of them comes after it (NONE: nothing does)."""

    steps: tuple[ChangeSet, ...]
    waits_for: CommitRef


class Overtaking:
    """While `first` takes the fleet to `fleet.commit`. `stored`: its record as the store has it; `then`: the commits
    that come after that one, in order, to which those that overtake are added."""

    def __init__(
        self, makes: Makes, stored: FleetRecord, fleet: FleetRecord, first: Stepper, then: list[CommitRef]
    ) -> None:
        self._makes, self._first, self.then = makes, first, then
        self.stored = stored
        self.fleet = fleet
        """As it will be when all is there that was taken so far."""
        self._under_way = fleet.commit
        self._taken = 0
        self._stuck: CommitRef | None = None
        self._put_off: set[str] = set()
        self.done: dict[CommitRef, ChangeSet] = {}
        """What those that overtook came to so far."""

    def follow(self, head: CommitRef) -> Overtook | None:
        """Takes what is on top of what was taken, up to `head`, as long as each may go before the rest. What came of
        it, where it is news; None too where the head is on top of something else."""
        last = self.then[-1] if self.then else self.fleet.commit
        chain = self._makes.repo.first_parents(last.id, head.id) if last != head else []
        if not chain:
            return None
        came = [own(each) for each in chain]
        self.then += came
        while self._taken < len(self.then) and self._stuck is None:
            commit = self.then[self._taken]
            if not self._take(commit):
                self._stuck = commit
        waits = self._stuck is not None or bool(self._put_off)
        found = tuple(self.done[each] for each in came if each in self.done)
        return Overtook(found, self._under_way if waits else NONE)

    def is_past(self, path: str) -> bool:
        """Whether a workspace is where the newest commit leads it, so that the next can be made on top of that; it is
        taken there if that can be done now."""
        if self._taken < len(self.then) or self._earlier(path) is Earlier.WAITS:
            return False
        self._first.settle()
        return True

    def propose(self, commit: CommitRef, intents: Mapping[Key, Intent]) -> tuple[ChangeSet, Callable[[], None]] | None:
        """Judges a commit on top of all that was taken; what it comes to, and what writes it once it is the branch's.
        None where that cannot be told before the rest is there."""
        if self._taken < len(self.then):
            return None
        step = self._step(commit, intents)
        if step is None:
            return None
        found = step.go()

        def take() -> None:
            self._arrive(commit)
            self.then.append(commit)
            step.release()
            self._took(commit, step, found)

        return (found, take) if not step.put_off else None

    def _take(self, commit: CommitRef) -> bool:
        # Asked first, since it takes workspaces past the commits before: the step has to find them there.
        admission = self._makes.comes_in(self.fleet, commit, self._is_there)
        step = self._step(commit, None, admission) if admission is not None else None
        if step is None or admission is None:
            return False
        self._arrive(commit, admission)
        found = step.go()
        self._took(commit, step, found)
        log.info("commit %s goes before the rest of %s: %s", f"{commit:.10}", f"{self._under_way:.10}", found)
        return True

    def _step(
        self, commit: CommitRef, intents: Mapping[Key, Intent] | None, admission: Admission = FREE
    ) -> Overtaker | None:
        """None for a commit that has to wait for its turn."""
        trees, whole = self._makes.trees, self._makes.whole
        if self.stored.lost or not self._claims_stay(self._under_way) or self._concerns_the_fleet(commit):
            return None
        if whole.next_config(self.fleet, commit)[0] is None:
            return None
        self._first.settle()
        step = self._makes.step(self.fleet, commit, intents, self._earlier, admission)
        try:
            overtakes = step.overtakes(trees.at(self.fleet.commit), _MOST) and self._claims_stay(commit)
            return step if overtakes else None
        except BadFile:
            return None

    def _claims_stay(self, commit: CommitRef) -> bool:
        """Whether the directories are whose they were, so that what comes on top is read as it will be. The commit's
        tree was compared with the one before."""
        here = self._makes.trees.at(commit)
        return self._makes.whole.claims(here, self._first.kept) == dict(self.stored.claims)

    def _concerns_the_fleet(self, commit: CommitRef) -> bool:
        return self._settings(commit) != self._settings(self.fleet.commit)

    def _settings(self, commit: CommitRef) -> str:
        here = self._makes.trees.at(commit)
        entry = self._makes.repo.entry_at(here.tree_id, joined(here.folder, FILE))
        return entry.id if entry is not None else ""

    def _earlier(self, path: str) -> Earlier:
        return Earlier.WAITS if path in self._put_off else self._first.bring(path)

    def _is_there(self, path: str) -> bool:
        """Whether a workspace is past the commits before, and what they make of it stands in the store."""
        if self._earlier(path) is Earlier.WAITS:
            return False
        self._first.settle()
        return True

    def _arrive(self, commit: CommitRef, admission: Admission = FREE) -> None:
        self.stored = self._makes.whole.arrive(self.stored, commit, admission)

    def _took(self, commit: CommitRef, step: Overtaker, found: ChangeSet) -> None:
        self._taken += 1
        self._put_off |= step.put_off
        self.done[commit] = found
        self.fleet = replace(self.fleet, commit=commit, arriving=self.stored.arriving)
        self._first.overtaken(commit)
