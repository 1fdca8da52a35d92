"""What a commit comes to, between judging and writing: what becomes of each workspace and of its objects, and why.

Made of verdicts (phases), and all that is written is made of it. Whoever tells of a commit, a log line, the answer to a
push, reports or `validate`, takes its words and counts from here. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from apiserver.model.commits import CommitRef
from apiserver.model.keys import Key
from apiserver.model.storagenames import LOGICAL_CLUSTERS, WORKSPACES
from apiserver.storage import alike
from apiserver.storage.protocol import Delete, Op, Put, PutAlike, PutRow
from reconciler.layout.errors import LayoutError
from reconciler.plan.deletions import RefusedDeletion

_NUMBERED = 1000
"""Workspaces of which is known how many objects change: more are not told one by one."""
_OF_ITSELF = frozenset({WORKSPACES, LOGICAL_CLUSTERS})
"""What stands for a workspace, and changes with it."""


class ChangeKind(StrEnum):
    """What became of a workspace or of an object, in the order in which it is told."""

    CREATED = "created"
    CONFIGURED = "configured"
    MOVED = "moved"
    """The same as before, in another directory or file."""
    DELETED = "deleted"
    HELD = "held"
    """It stays as it is, since what was to become of it is no good."""
    UNCHANGED = "unchanged"


class ObjectChange(NamedTuple):
    """One object that is written. `answers`: what is said of it to whoever asked for it, right behind it."""

    change: ChangeKind
    op: Put | Delete
    answers: tuple[Op, ...] = ()

    @property
    def key(self) -> Key:
        return self.op.key


@dataclass(slots=True)
class WorkspaceChanges:
    """Of one workspace: one transaction. `unchanged`: how many objects were looked at and stay as they are. `also`:
    what goes with them, the workspace's record last. `why`: the problems for which it is held; `refused`: the deletion
    that has to be allowed first; `fault`: the problem is this program's. `mended`: it was held, and is good.
    `provides`: exports, schemas or types are others, so that consumers have to be looked at again. `locked`: see
    ChangeSet. `new`: nothing of it is written where anything stands."""

    path: str
    became: ChangeKind = ChangeKind.UNCHANGED
    objects: list[ObjectChange] = field(default_factory=list)
    unchanged: int = 0
    also: list[Op] = field(default_factory=list)
    why: list[LayoutError] = field(default_factory=list)
    refused: RefusedDeletion | None = None
    fault: bool = False
    mended: bool = False
    provides: bool = False
    locked: list[str] = field(default_factory=list)
    new: bool = False

    def __bool__(self) -> bool:
        """Whether anything is written."""
        return bool(self.objects or self.also)

    def written(self) -> Iterator[Key]:
        """The objects that are."""
        return (each.op.key for each in self.objects)

    def ops(self) -> list[Op]:
        """What goes to the store, in one transaction and in this order."""
        out: list[Op] = []
        for _, op, answers in self.objects:
            out.append(op)
            if answers:
                out += answers
        return out + self.also


def each_of(op: PutAlike) -> Iterator[WorkspaceChanges]:
    """What such an op comes to for each of the workspaces whose rows it writes."""
    for at, (path, row) in enumerate(op.rows):
        puts = [alike.put(op, column, at) for column in op.columns]
        objects = [ObjectChange(ChangeKind.CREATED, put) for put in puts if not put.key.resource.startswith("~")]
        own: list[Op] = [put._replace(expect=None) for put in puts if put.key.resource.startswith("~")]
        also = [*own, PutRow(op.table, path, row)]
        yield WorkspaceChanges(path, ChangeKind.CREATED, objects, also=also, new=True)


@dataclass(slots=True)
class ChangeSet:
    """Of one step, or of several one after the other.

    `became`: each workspace that was looked at, and what became of it beside being held; `objects`: how many of which;
    `numbers`: of the first workspaces, how many objects change in each. Of objects nothing else is kept, so a large
    commit weighs little. `judged` counts judgements. `held`: with their
    problems; `mended`: held before and good now; `faults`: held for a fault of this program. `deleted`: workspaces in
    the order in which they went. `refused`: deletions that have to be allowed, by the uppermost workspace that they
    concern. `moves`: workspaces that are elsewhere now, with all below them: by the old path the new one; `renames`:
    those that seem to be and are not, since nothing says so. `kept`: see Target, as it is now. `later`: workspaces
    beyond the step's commit, which have to be judged anew where they are. `locked`: workspaces with files that
    could not be read, since they are encrypted, in words.
    """

    judged: int = 0
    became: dict[str, ChangeKind] = field(default_factory=dict)
    objects: Counter[ChangeKind] = field(default_factory=Counter)
    numbers: dict[str, int] = field(default_factory=dict)
    held: dict[str, list[LayoutError]] = field(default_factory=dict)
    mended: list[str] = field(default_factory=list)
    faults: set[str] = field(default_factory=set)
    deleted: list[str] = field(default_factory=list)
    refused: dict[str, RefusedDeletion] = field(default_factory=dict)
    moves: dict[str, str] = field(default_factory=dict)
    renames: dict[str, str] = field(default_factory=dict)
    kept: dict[str, CommitRef] = field(default_factory=dict)
    later: set[str] = field(default_factory=set)
    locked: dict[str, list[str]] = field(default_factory=dict)

    def add(self, changes: WorkspaceChanges) -> None:
        """A workspace comes to this, for now: if it is judged again, the later verdict counts."""
        path = changes.path
        self.judged += changes.became is not ChangeKind.DELETED
        self._becomes(path, changes.became)
        self._count(changes, 1)
        if changes.became is ChangeKind.DELETED:
            self.deleted.append(path)
            return
        if changes.why:
            self.held[path] = changes.why
        if changes.mended:
            self.mended.append(path)
        if changes.refused is not None:
            self.refused[path] = changes.refused
        if changes.fault:
            self.faults.add(path)
        self.locked.pop(path, None)
        if changes.locked:
            self.locked[path] = changes.locked

    def add_alike(self, op: PutAlike) -> None:
        """The same of workspaces that are created together."""
        paths = [path for path, _ in op.rows]
        if not (self.became.keys().isdisjoint(paths) and self.locked.keys().isdisjoint(paths)):
            for changes in each_of(op):
                self.add(changes)
            return
        resources = [each.resource for each in op.columns if not each.resource.startswith("~")]
        self.judged += len(paths)
        self.became.update(dict.fromkeys(paths, ChangeKind.CREATED))
        self.objects[ChangeKind.CREATED] += len(paths) * len(resources)
        number = sum(resource not in _OF_ITSELF for resource in resources)
        numbered = paths[: max(0, _NUMBERED - len(self.numbers))] if number else ()
        self.numbers.update(dict.fromkeys(numbered, number))

    def moved(self, path: str) -> None:
        """A workspace is at this path now."""
        self._becomes(path, ChangeKind.MOVED)

    def withdraw(self, changes: WorkspaceChanges) -> None:
        """Nothing of it was written, and the workspace is judged again."""
        self._count(changes, -1)

    def then(self, later: ChangeSet) -> ChangeSet:
        """Both, one after the other: who is held in the end and for which problems, and what is to be allowed."""
        out = ChangeSet(self.judged + later.judged, dict(self.became), Counter(self.objects), kept=later.kept)
        out.later = later.later
        out.locked = {path: each for path, each in self.locked.items() if path not in later.became} | later.locked
        out.moves, out.renames = self.moves | later.moves, self.renames | later.renames
        out.held, out.faults, out.refused = dict(self.held), set(self.faults), dict(self.refused)
        for path, change in later.became.items():
            out._becomes(path, change)
        for each in ChangeKind:
            out.objects[each] += later.objects[each]
        out.numbers = dict(self.numbers)
        for path, number in later.numbers.items():
            out._number(path, number)
        out.held |= later.held
        out.faults |= later.faults
        out.refused = {path: each for path, each in out.refused.items() if path in out.held and path not in later.held}
        out.refused |= later.refused
        out.mended, out.deleted = [*self.mended, *later.mended], [*self.deleted, *later.deleted]
        return out

    def of(self, path: str) -> ChangeKind | None:
        """What became of a workspace in all; None where it was not looked at."""
        return ChangeKind.HELD if path in self.held else self.became.get(path)

    def counts(self) -> Mapping[ChangeKind, int]:
        """Of workspaces."""
        out = Counter(self.became.values())
        for path in self.held:
            out[self.became[path]] -= 1
            out[ChangeKind.HELD] += 1
        return out

    def told(self, *words: ChangeKind) -> str:
        """Counts of workspaces in words, those that are not zero: `3 created, 1 held`."""
        counts = self.counts()
        return ", ".join(f"{counts[word]} {word}" for word in ChangeKind if word in words and counts[word])

    def __str__(self) -> str:
        """For a log line."""
        objects = ", ".join(f"{self.objects[word]} {word}" for word in ChangeKind if self.objects[word])
        said = self.told(*ChangeKind) or "nothing to do"
        return f"workspaces {said}; objects {objects}" if objects else said

    def _becomes(self, path: str, change: ChangeKind) -> None:
        before = self.became.get(path)
        self.became[path] = change if before is None else _after(before, change)
        if before is not None and change is not ChangeKind.HELD and self.held.pop(path, None) is not None:
            self.faults.discard(path)
            self.refused.pop(path, None)

    def _count(self, changes: WorkspaceChanges, sign: int) -> None:
        objects = self.objects
        for each in changes.objects:
            objects[each.change] += sign
        if changes.path in self.numbers or len(self.numbers) < _NUMBERED:
            number = sum(each.op.key.resource not in _OF_ITSELF for each in changes.objects)
            if number:
                self._number(changes.path, sign * number)
        if changes.unchanged:
            objects[ChangeKind.UNCHANGED] += sign * changes.unchanged

    def _number(self, path: str, number: int) -> None:
        if path in self.numbers or len(self.numbers) < _NUMBERED:
            self.numbers[path] = self.numbers.get(path, 0) + number


def together(found: Iterable[ChangeSet]) -> ChangeSet:
    """Steps one after the other, as one."""
    out = ChangeSet()
    for each in found:
        out = out.then(each)
    return out


_ORDER = (ChangeKind.HELD, ChangeKind.UNCHANGED, ChangeKind.CONFIGURED, ChangeKind.MOVED, ChangeKind.CREATED)


def _after(before: ChangeKind, now: ChangeKind) -> ChangeKind:
    """What becomes of a workspace in two steps: what says more counts, so what was created and then configured is
    created. What is deleted is that until something is created in its place."""
    if now is ChangeKind.DELETED or (before is ChangeKind.DELETED and now is not ChangeKind.CREATED):
        return ChangeKind.DELETED
    return now if before is ChangeKind.DELETED else max(before, now, key=_ORDER.index)
