"""The commits of a history that changed a workspace, or any, with what each did to objects.

Called by `treeplane log`. Which workspaces a commit touches follows from its trees (layout/compare, review/sharers),
what it did there from the files that differ (objects), and who is behind it people find out, for those commits alone
that are told.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from apiserver.model import paths
from apiserver.model.counts import counted
from reconciler.history.fleet import FleetHistory
from reconciler.history.follow import TouchedWorkspace, followed, is_fed
from reconciler.history.kinds import AskedObjects, DeclaredId, workspace_id
from reconciler.history.moved import MovedWorkspace, MoveHistory, differing
from reconciler.history.objects import compared
from reconciler.history.people import ObjectWriters, People
from reconciler.history.result import FleetLog, LogEntry, ObjectStep, ToldCommit, WorkspaceStep
from reconciler.layout.compare import Touched
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.loading.changeset import ChangeKind
from reconciler.repository.objects import CommitInfo
from reconciler.repository.writtenby import WrittenBy
from reconciler.review.sharers import sharers

MOST_WORKSPACES = 200
"""Of one commit, how many are told of."""
_UNMET = 5
"""Claims that fit nothing, of one commit."""


class _Found(NamedTuple):
    """A commit that is to be told. `more`: it touches more workspaces."""

    commit: CommitInfo
    workspaces: tuple[WorkspaceStep, ...]
    notes: tuple[str, ...]
    more: bool = False


def log(history: FleetHistory, people: People, directory: str, asked: AskedObjects, most: int) -> FleetLog:
    """`directory`: of the workspace, "" for all; `most`: commits that are told, 0 for all."""
    found = _Logging(history, asked)
    every = found.of_one(directory) if directory else found.of_all()
    met = list(islice(every, most + 1 if most else None))
    shown = met[:most] if most else met
    commits = people.told(each.commit.id for each in shown)
    # Who asks for some objects is not told what is said of others.
    whole = not asked
    entries = (_entry(each, told, people, whole) for each, told in zip(shown, commits, strict=True))
    return FleetLog(history.name, history.head, tuple(entries), len(met) > len(shown))


def _entry(found: _Found, commit: ToldCommit, people: People, whole: bool) -> LogEntry:
    writers = people.writers(commit)
    workspaces = tuple(_written(each, writers) for each in found.workspaces)
    unmet = writers.unmet(each.path for each in workspaces) if whole and not found.more else []
    fits = (f"{each.user} is said to have written {_name(each)}, which it does not change" for each in unmet)
    more = [f"and {counted(len(unmet) - _UNMET, 'more such claim')}"] if len(unmet) > _UNMET else []
    return LogEntry(commit, workspaces, found.more, (*found.notes, *islice(fits, _UNMET), *more))


def _name(said: WrittenBy) -> str:
    return f"{said.resource} {said.namespace}/{said.name}" if said.namespace else f"{said.resource} {said.name}"


def _written(step: WorkspaceStep, writers: ObjectWriters) -> WorkspaceStep:
    of = paths.parent(step.path) or ""
    own = writers.of(of, workspace_id(step.path)) if step.change is not ChangeKind.CONFIGURED else None
    objects = tuple(each._replace(writer=writers.of(each.object.workspace, _id(each))) for each in step.objects)
    return step._replace(objects=objects, writer=own)


def _id(step: ObjectStep) -> DeclaredId:
    group = step.object.resource.partition(".")[2]
    return DeclaredId(group, step.object.kind, step.object.namespace, step.object.name)


class _Logging:
    def __init__(self, history: FleetHistory, asked: AskedObjects) -> None:
        self._history, self._asked, self._moves = history, asked, MoveHistory(history)

    def of_one(self, directory: str) -> Iterator[_Found]:
        for at in followed(self._history, self._moves, directory):
            step, unread = self._step(at)
            if step is not None or unread:
                yield _Found(at.commit, (step,) if step is not None else (), unread)

    def of_all(self) -> Iterator[_Found]:
        for commit, before in self._history.steps():
            found = self._first(commit) if before is None else self._between(commit, before)
            if found is not None:
                yield found

    def _first(self, commit: CommitInfo) -> _Found | None:
        """All that is there is new; not all of it is read."""
        places = list(islice(self._history.tree(commit.tree).workspaces(), MOST_WORKSPACES + 1))
        touched = (TouchedWorkspace(commit, None, place, None) for place in places[:MOST_WORKSPACES])
        return self._found(commit, touched, more=len(places) > MOST_WORKSPACES)

    def _between(self, commit: CommitInfo, before: CommitInfo) -> _Found | None:
        new, old = self._history.tree(commit.tree), self._history.tree(before.tree)
        found = differing(new, old)
        if found is None:
            note = f"{commit.id:.10} cannot be read as a fleet, and is passed over"
            return _Found(commit, (), (note,)) if not self._asked else None
        moves = self._moves.between(commit, before, found)
        paths = {*found.changed, *found.appeared, *found.removed}
        fed = {each.path: each.directory for each in sharers(old, new) if each.path not in paths}
        touched = (
            self._fed(fed[path], commit, before)
            if path in fed
            else _touched(path, found, moves, (commit, before), (new, old))
            for path in sorted({*paths, *fed})
        )
        some = list(islice((each for each in touched if each is not None), MOST_WORKSPACES + 1))
        return self._found(commit, iter(some[:MOST_WORKSPACES]), more=len(some) > MOST_WORKSPACES)

    def _fed(self, directory: str, commit: CommitInfo, before: CommitInfo) -> TouchedWorkspace | None:
        """One of which nothing differs but what is shared; None where nothing of that is its."""
        if not is_fed(self._history, directory, commit, before):
            return None
        new, old = (self._history.tree(each.tree).at(directory) for each in (commit, before))
        return TouchedWorkspace(commit, before, new, old)

    def _found(self, commit: CommitInfo, touched: Iterator[TouchedWorkspace], *, more: bool) -> _Found | None:
        steps, notes = [], dict[str, None]()
        for at in touched:
            step, unread = self._step(at)
            steps += [step] if step is not None else []
            notes |= dict.fromkeys(unread)
        return _Found(commit, tuple(steps), tuple(notes), more) if steps or notes else None

    def _step(self, at: TouchedWorkspace) -> tuple[WorkspaceStep | None, tuple[str, ...]]:
        """None where nothing that is asked about is another."""
        found = compared(self._history, at, self._asked)
        place = at.new or at.old
        assert place is not None, "it is there in one of the commits"
        change = _change(at)
        moved = at.old.directory if at.new and at.old and change is ChangeKind.MOVED else ""
        if not found.objects and (self._asked or change is ChangeKind.CONFIGURED):
            return None, tuple(found.unread)
        to = self._moves.after(at.old, at.commit, at.before) if at.old and at.before and at.new is None else ""
        if to:
            return WorkspaceStep(place.path, place.directory, ChangeKind.MOVED, moved_to=to), ()
        return WorkspaceStep(place.path, place.directory, change, tuple(found.objects), moved), tuple(found.unread)


def _change(at: TouchedWorkspace) -> ChangeKind:
    if at.old is None or at.new is None:
        return ChangeKind.CREATED if at.old is None else ChangeKind.DELETED
    return ChangeKind.CONFIGURED if at.old.directory == at.new.directory else ChangeKind.MOVED


def _touched(
    path: str,
    found: Touched,
    moves: list[MovedWorkspace],
    commits: tuple[CommitInfo, CommitInfo],
    trees: tuple[WorkspaceTree, WorkspaceTree],
) -> TouchedWorkspace | None:
    """One of those that differ; None of what is told where it is now."""
    (commit, before), (_, old) = commits, trees
    here = found.places.get(path) if path not in found.removed else None
    was = found.left.get(path) if path in found.removed else None
    if path in found.removed:
        gone = any(was is not None and _inside(was, each.old) for each in moves)
        return None if gone or was is None else TouchedWorkspace(commit, before, None, was)
    if here is None:
        return None  # it lost its workspace.yaml alone: nothing of it is served anew
    if path in found.appeared:
        move = next((each for each in moves if _inside(here, each.new)), None)
        if move is not None:
            was = old.at(move.old.directory + here.directory[len(move.new.directory) :])
        return TouchedWorkspace(commit, before, here, was)
    return TouchedWorkspace(commit, before, here, old.at(here.directory) or found.left.get(path))


def _inside(place: WorkspaceDir, above: WorkspaceDir) -> bool:
    return place.directory == above.directory or place.directory.startswith(f"{above.directory}/")
