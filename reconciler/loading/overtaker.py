"""The step of a commit that goes before the rest of others: it judges and writes only who need not wait for them.

Made by loader for overtaking. A workspace is taken past the commits before as soon as anybody asks for it. Who cannot
be is put off, and with it who asks for it: what they come to is told when it is the commit's turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from reconciler.layout.tree import WorkspaceTree
from reconciler.loading.case import Needs
from reconciler.loading.changeset import ChangeSet
from reconciler.loading.site import Site
from reconciler.loading.step import StepTarget
from reconciler.loading.steps import Earlier, Stepper
from reconciler.loading.ways import Way
from reconciler.loading.world import PutOff


class Overtaker(Stepper):
    """`earlier` takes a workspace past the commits before. `put_off`: those that wait."""

    def __init__(self, site: Site, target: StepTarget, way: Way, earlier: Callable[[str], Earlier]) -> None:
        super().__init__(site, target, way)
        self._earlier = earlier
        self.put_off: set[str] = set()

    def overtakes(self, before: WorkspaceTree, most: int) -> bool:
        """Whether the commit may go before others: it concerns some workspaces, not more than so many, and nobody else.
        Then they are ready to be judged."""
        if self._guard is not None and self._guard.said():
            return False
        waiting, going = self._concerned(before, ())
        if (
            self._moves.are_there
            or going
            or self._kept.tops != self._target.kept
            or any(self._kept.paths())
            or len(waiting) > most
        ):
            return False
        self._to_judge.add(waiting)
        return True

    def go(self) -> ChangeSet:
        """Judges and writes those that need not wait."""
        return self._finish()

    def _is_put_off(self, path: str) -> bool:
        return path in self.put_off

    def _put_off(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.put_off.add(path)
            self._to_judge.drop(path)
            self._to_judge.verdicts.pop(path, None)
            self._world.forget(path)

    def _waits(self, path: str) -> bool:
        if path not in self.put_off and self._bring(path) is Earlier.WAITS:
            self._put_off((path,))
        return super()._waits(path)

    def _bring(self, path: str) -> Earlier:
        """Whom it takes something from goes first: it sees them as of its commit, whether or not its verdict asks."""
        for other in self._world.sources(path):
            if self._bring_alone(other) is Earlier.WAITS:
                return Earlier.WAITS
        return self._bring_alone(path)

    def _bring_alone(self, path: str) -> Earlier:
        found = self._earlier(path)
        if found is Earlier.BROUGHT:
            self._world.refresh()
        return found

    def _judge_now(self, path: str) -> bool | Needs:
        try:
            found = super()._judge_now(path)
        except PutOff:
            self._put_off((path,))
            return True
        if isinstance(found, Needs) or path in self.put_off or self._bring(path) is not Earlier.BROUGHT:
            return found
        # Whoever was asked made the commits before say more of it: it went there first, and is judged on top of that.
        self._put_off((path,))
        self.put_off.discard(path)
        self._to_judge.add((path,))
        return self._judge_now(path)

    def _stand(self, judged: Iterable[str]) -> None:
        """Of a circle all are put off if one is, since each was judged by what the others are."""
        judged = [*judged]
        if any(map(self._has_to_wait, judged)):
            self._put_off(judged)
        else:
            super()._stand(judged)

    def _has_to_wait(self, path: str) -> bool:
        """Whether others follow from what it comes to, who are not past the commits before; or it is held for what they
        have, and may have no more then."""
        _, verdict = self._to_judge.verdicts.get(path, (None, None))
        if path in self.put_off or verdict is None:
            return path in self.put_off
        refused = verdict.changes.refused
        return verdict.changes.provides or (refused is not None and refused.for_others)
