"""One commit into the store: every workspace that it touches is judged and, if good, moved; the others do not notice.

Called by loader. Order: parents before children, providers before consumers, removals last and deepest first. Writes of
one workspace are one transaction; those of many are on their way together, and a step ends when all are on disk.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field

from apiserver.model.failures import described
from apiserver.model.keys import Key
from apiserver.registry.intents import Intent
from apiserver.storage.protocol import Conflict, Op
from reconciler.layout.compare import touched
from reconciler.layout.errors import LayoutError
from reconciler.layout.manifest import Manifest
from reconciler.layout.tree import WorkspaceDir, WorkspaceTree
from reconciler.loading.case import Case, Recorded, Verdict, was_served
from reconciler.loading.judge import Judge, Site
from reconciler.loading.moment import Moment
from reconciler.loading.offers import TYPES, Offers
from reconciler.loading.removal import remove
from reconciler.loading.turns import Steps, Turns
from reconciler.loading.world import Waits, World
from reconciler.plan import system
from reconciler.repository.errors import RepositoryError

log = logging.getLogger(__name__)

_IN_FLIGHT = 1000
_TOGETHER = 64
"""Workspaces whose writes are handed over at once: the store's writer wakes once for them, and syncs them together."""
_RETRIES = 20
_ROUNDS = 20
"""How often one step judges a workspace anew for others."""

Secrets = Callable[[str], tuple[Manifest, ...]]
"""The Secrets of keys/secrets/ for a workspace path."""


FindRecorded = Callable[[str, str], Recorded | None]
"""What the status branch knows of a workspace: (path, directory)."""


@dataclass(slots=True)
class Step:
    """What a step did: workspaces judged, moved (something was written), held with their problems, removed, and mended
    (held before and good now). `faults`: those held for a fault of this program."""

    judged: int = 0
    moved: list[str] = field(default_factory=list)
    held: dict[str, list[LayoutError]] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)
    mended: list[str] = field(default_factory=list)
    faults: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Target:
    """Where a step goes: the commit, its tree, and what to do there. `recorded` gives, at recovery, what the status
    branch knows of a workspace (path, directory). `lost`: the same after a recovery, of workspaces that it could not
    bring back, and the commit that was recorded. `fresh`: the store holds nothing yet. `most_removed`: the fleet's
    safety limit. `intents`: writes through the API that wait. `proposed`: the commit was made of them and may still
    not become the branch's, so nothing is written before `release`."""

    moment: Moment
    tree: WorkspaceTree
    secrets: Secrets
    recorded: FindRecorded | None = None
    lost: tuple[FindRecorded, str] | None = None
    fresh: bool = False
    most_removed: int | None = None
    intents: Mapping[Key, Intent] = field(default_factory=dict)
    proposed: bool = False


class TooManyRemoved(Exception):
    """A commit removes more workspaces than treeplane.yaml allows at once."""

    def __init__(self, removed: int, limit: int) -> None:
        super().__init__(f"removes {removed} workspaces; spec.safety.maxDeletedWorkspaces allows {limit} in one commit")


class Stepper:
    """Runs one step; made anew for each."""

    def __init__(self, site: Site, target: Target, progress: Callable[[int], None] = lambda _: None) -> None:
        self._site = site
        self._target = target
        self._progress = progress
        self._pending: dict[str, None] = {}
        self._forced: set[str] = set()
        self._all = False
        self._places: dict[str, WorkspaceDir] = {}
        self._at: WorkspaceDir | None = None
        self._turns = Turns(Steps(self._waits, self._judge_now, self._stand, self._look_again, self._offers))
        self._world = World(site.store, self._turns)
        self._judge = Judge(site, self._world)
        self._ready: list[tuple[str, list[Op]]] = []
        self._writes: list[tuple[str, Future[list[int]]]] = []
        self._verdicts: dict[str, tuple[Case, Verdict]] = {}
        self._attempts: dict[str, int] = {}
        self._rounds: dict[str, int] = {}
        self._kept_back: list[tuple[str, Verdict]] | None = [] if target.proposed else None
        self.done = Step()

    def everything(self) -> Step:
        """All workspaces of the commit: a first load, or a check of all."""
        self._all = True
        for _ in self._target.tree.workspaces():
            pass  # two directories of one path are known once all are seen, and both are held for it
        for directory in self._target.tree.workspaces():
            self._at = directory
            self._turns.take(directory.path)
        for path in system.shipped_workspaces():
            self._turns.take(path)
        self._finish()
        return self.done

    def difference(self, before: WorkspaceTree, also: Iterable[str] = ()) -> Step:
        """The workspaces whose content differs from that in `before`, and those in `also` (judged whole)."""
        found = touched(self._target.tree, before, self._known)
        limit = self._target.most_removed
        if limit is not None and len(found.removed) > limit:
            raise TooManyRemoved(len(found.removed), limit)
        self._places = found.places
        self._forced.update(also)
        waiting = sorted({*found.changed, *found.appeared, *self._forced}, key=_depth)
        self._pending.update(dict.fromkeys(waiting))
        for path in waiting:
            self._turns.take(path)
        for path in sorted(found.removed, key=_depth, reverse=True):
            self._remove(path)
        self._finish()
        return self.done

    def release(self) -> Step:
        """Write what a proposed commit comes to."""
        kept, self._kept_back = self._kept_back or [], None
        for path, verdict in kept:
            self._write(path, verdict)
        self._finish()
        return self.done

    def _known(self, path: str) -> list[str]:
        record = self._world.record(path)
        return [record.directory] if record is not None and record.directory else []

    def _waits(self, path: str) -> bool:
        return path in self._pending or (self._all and not self._world.is_judged(path))

    def _judge_now(self, path: str) -> bool:
        """Judges a workspace; whether it is good. Raises Waits, after which it waits still."""
        directory = self._find(path)
        if directory is None and path not in system.shipped_workspaces() and self._world.record(path) is None:
            self._pending.pop(path, None)
            self._world.gone(path)
            return True
        case = self._case(path, directory)
        verdict = self._verdict(case)
        self._pending.pop(path, None)
        self._verdicts[path] = case, verdict
        self._world.moved(verdict.record)
        return not verdict.problems

    def _stand(self, judged: Iterable[str]) -> None:
        """The verdicts on these workspaces count from now on."""
        for path in judged:
            case, verdict = self._verdicts.pop(path, (None, None))
            if case is None or verdict is None:
                continue
            self._count(case, verdict)
            if verdict.ops:
                self._write(path, verdict)
            if case.recorded is not None and self._target.recorded is None and not verdict.problems:
                self._look_again(path)  # it is back where it was, and follows from there
            self._progress(self.done.judged)

    def _count(self, case: Case, verdict: Verdict) -> None:
        done = self.done
        done.judged += 1
        if verdict.problems:
            done.held[case.path] = verdict.problems
        elif case.record is not None and case.record.errors:
            done.mended.append(case.path)
        if verdict.fault:
            done.faults.add(case.path)

    def _offers(self, path: str) -> Offers:
        return self._judge.offers(self._case(path, self._find(path)))

    def _find(self, path: str) -> WorkspaceDir | None:
        if self._at is not None and self._at.path == path:
            return self._at
        return self._places.get(path) or self._target.tree.find(path, next(iter(self._known(path)), ""))

    def _look_again(self, path: str) -> None:
        """Have a workspace judged again, all of it, for what another one provides by now. Those that never come to rest
        (each good only if the other is not) are left as they are."""
        if self._verdicts.pop(path, None) is not None:
            self._world.forget(path)
        self._rounds[path] = self._rounds.get(path, 0) + 1
        if self._rounds[path] > _ROUNDS:
            log.error("workspace %s follows from itself: it stays as it is", path)
            return
        self._forced.add(path)
        self._pending.setdefault(path)

    def _case(self, path: str, directory: WorkspaceDir | None) -> Case:
        earlier = self._verdicts.get(path)
        if earlier is not None:
            return earlier[0]  # the verdict on it did not stand
        target = self._target
        place, record = directory.directory if directory else "", self._world.record(path)
        recorded = target.recorded(path, place) if target.recorded else None
        moment, tree = target.moment, target.tree
        served = recorded.summary.served if recorded is not None else ""
        if target.lost is not None and record is not None and not record.served:
            find, commit = target.lost
            recorded = found if was_served(found := find(path, place)) else None
            served = (recorded.summary.served or commit) if recorded is not None else ""
        if served:
            moment = self._site.moments.at(served, moment.time)
            tree = self._site.trees.at(moment.id)
            directory = tree.find(path)
        problems = tuple(tree.problems(directory)) if directory is not None else ()
        again = self._world.is_judged(path) or path in self._attempts
        return Case(
            path=path,
            moment=moment,
            tree=tree,
            directory=directory,
            record=record,
            appears=not again and (target.fresh or (record is None and recorded is None)),
            forced=path in self._forced or directory is None,
            problems=problems,
            recorded=recorded,
            secrets=target.secrets(path),
            intents=target.intents,
            proposed=target.proposed,
        )

    def _verdict(self, case: Case) -> Verdict:
        try:
            return self._judge.judge(case)
        except (RepositoryError, MemoryError, Waits):
            raise
        except Exception as error:
            # A fault of this program in one workspace's content stays that workspace's.
            log.error("workspace %s could not be judged at %s\n%s", case.path, case.moment.id, described(error))
            return self._judge.refuse(case)

    def _write(self, path: str, verdict: Verdict) -> None:
        if self._kept_back is not None:
            self._kept_back.append((path, verdict))
            return
        self.done.moved.append(path)
        self._ready.append((path, verdict.ops))
        if verdict.provides:
            self._settle()
            self._world.provides_anew(path)
            self._recheck_consumers(path)
            changed = {op.key.name for op in verdict.ops if op.key.resource == TYPES}
            if changed:
                self._recheck_types({(path, name) for name in changed})
        elif len(self._ready) >= _TOGETHER:
            self._hand_over()
            self._settle(_IN_FLIGHT)

    def _hand_over(self) -> None:
        ready, self._ready = self._ready, []
        logged = not self._target.fresh
        self._writes += [(path, self._site.store.write(*ops, log=logged)) for path, ops in ready]

    def _recheck_consumers(self, provider: str) -> None:
        for path in self._world.consumers(provider):
            if path != provider and self._world.record(path) is not None:
                self._look_again(path)

    def _recheck_types(self, changed: set[tuple[str, str]]) -> None:
        """Workspaces of a type follow it, and one that is held may wait for it. In a step over all it came first."""
        if not self._all:
            for path in self._world.of_types(changed):
                self._look_again(path)

    def _settle(self, under_way: int = 0) -> None:
        """Wait until no more than so many writes are under way; a workspace that somebody else wrote to meanwhile is
        judged again."""
        self._hand_over()
        settled = max(0, len(self._writes) - under_way)
        writes, self._writes = self._writes[:settled], self._writes[settled:]
        for path, future in writes:
            try:
                future.result()
            except Conflict:
                self._again(path)

    def _again(self, path: str) -> None:
        self._attempts[path] = self._attempts.get(path, 0) + 1
        if self._attempts[path] > _RETRIES:
            raise RuntimeError(f"workspace {path} is written to so often that a commit cannot be applied")
        self._world.forget(path)
        self._pending.setdefault(path)

    def _remove(self, path: str) -> None:
        if self._kept_back is not None:
            raise RuntimeError(f"a proposed commit removes workspace {path}")
        self._settle()
        record = self._world.record(path)
        if record is None:
            return
        parent = self._world.record(record.parent) if record.parent else None
        bound = any(consumer != path for consumer in self._world.consumers(path))
        ops = remove(self._site.store, self._site.catalog, record, parent, bound=bound)
        self._site.store.write(*ops).result()
        self._world.gone(path)
        self._world.provides_anew(path)
        self._recheck_consumers(path)
        self.done.removed.append(path)

    def _finish(self) -> None:
        self._settle()
        while self._pending or self._ready or self._writes:
            for path in sorted(self._pending, key=_depth):
                self._turns.take(path)
            self._settle()


def _depth(path: str) -> tuple[int, str]:
    return path.count(":"), path
