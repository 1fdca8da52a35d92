"""Who waits to be judged in a step, and for what: its content as far as it changed, all of it, or what others provide.

Made by steps; concerns, which finds whom a commit touches, and overtaker write to it, too. A workspace that a later
commit took along is past the step; one that follows from itself without an end is left as it is.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable

from apiserver.model import paths
from apiserver.model.commits import NONE, CommitRef
from apiserver.registry.tree import WorkspaceRecord
from reconciler.loading.case import Case, Verdict
from reconciler.loading.step import StepTarget
from reconciler.loading.turns import Turns
from reconciler.loading.world import World

log = logging.getLogger(__name__)

_ATTEMPTS = 20
"""How often somebody else may write to a workspace between its verdict and what that writes."""
_ROUNDS = 20
"""How often one step judges a workspace anew for others."""


class ToJudge:
    """`forced`: those of which all content counts; `provided`: those to be judged for what others provide, unless they
    are among `forced`, too. `attempted`: those that somebody else wrote to meanwhile. `verdicts`: those that do not
    count yet, since whom they follow from is not judged. `later`: those that have to be judged at a later commit."""

    def __init__(self, target: StepTarget, world: World, turns: Turns, later: set[str]) -> None:
        self._target, self._world, self._turns = target, world, turns
        self._passing = set(target.passed)
        self._pending: dict[str, None] = {}
        self._attempts: dict[str, int] = {}
        self._rounds: dict[str, int] = {}
        self._later = later
        self.everyone = False
        """Whether all workspaces of the commit are judged."""
        self.forced: set[str] = set()
        self.provided: set[str] = set()
        self.verdicts: dict[str, tuple[Case, Verdict]] = {}

    @property
    def attempted(self) -> Collection[str]:
        return self._attempts.keys()

    def __bool__(self) -> bool:
        return bool(self._pending)

    def __contains__(self, path: str) -> bool:
        return path in self._pending

    def add(self, some: Iterable[str]) -> None:
        self._pending.update(dict.fromkeys(some))

    def drop(self, path: str) -> None:
        """It is judged, or is not to be."""
        self._pending.pop(path, None)

    def upcoming(self) -> list[str]:
        """Those that wait, parents first."""
        return sorted(self._pending, key=paths.depth)

    def waits(self, path: str) -> bool:
        """Whether a workspace has yet to be judged."""
        return path in self._pending or (self.everyone and not self._world.is_judged(path))

    def waits_in(self, path: str) -> bool:
        """Whether a workspace, or any that it stands in, waits to be judged."""
        return any(at in self._pending for at in paths.upwards(path))

    # -- once more

    def again(self, path: str) -> None:
        """Have a workspace judged again, all of it. Those that never come to rest (each good only if the other is not)
        are left as they are."""
        self._turns.forget(path)
        self._again_as_one_of(self.forced, path)

    def follow(self, consumers: Iterable[str]) -> None:
        """Have workspaces follow what others provide by now."""
        for path in consumers:
            if self._world.record(path) is not None:
                self._again_as_one_of(self.provided, path)

    def attempt(self, path: str) -> None:
        """Have a workspace judged again that somebody else wrote to meanwhile."""
        self._attempts[path] = self._attempts.get(path, 0) + 1
        if self._attempts[path] > _ATTEMPTS:
            raise RuntimeError(f"workspace {path} is written to so often that a commit cannot be applied")
        self._world.forget(path)
        self._pending.setdefault(path)

    def _again_as_one_of(self, those: set[str], path: str) -> None:
        if path in self._target.staying:
            return
        if self._passed(path) not in (NONE, self._target.moment.commit):
            self._later.add(path)
            return
        if self.verdicts.pop(path, None) is not None:
            self._world.forget(path)
        self._rounds[path] = self._rounds.get(path, 0) + 1
        if self._rounds[path] > _ROUNDS:
            log.error("workspace %s follows from itself: it stays as it is", path)
            return
        those.add(path)
        self._pending.setdefault(path)

    # -- those that are past the step

    def passes(self, commit: CommitRef) -> None:
        """From now on some workspaces are at a commit that comes after the step's."""
        self._passing.add(commit)

    def is_past(self, path: str) -> bool:
        """Whether a workspace is at the step's commit already, or at one that follows it. Judging it here would take it
        back, and what the later commit brought with it."""
        at = NONE if self._world.is_judged(path) else self._passed(path)
        again = path in self.forced or path in self.provided
        return bool(at) and (at != self._target.moment.commit or not again)

    def was_ahead(self, path: str) -> bool:
        """Whether a workspace is where this step leads, or at a commit that was left: nobody need have heard of it."""
        record = self._world.record(path)
        return bool(self._past(record)) or (record is not None and record.past in self._target.left)

    def _passed(self, path: str) -> CommitRef:
        """Where a workspace is that is at the step's commit or beyond it; NONE if it is not."""
        return self._past(self._world.record(path) if self._passing else None)

    def _past(self, record: WorkspaceRecord | None) -> CommitRef:
        return record.past if record is not None and record.past in self._passing else NONE
