"""Who last set each field of an object, as it is declared: field by field, through moves of its file and its workspace.

Called by `treeplane blame`. First parents of the branch are walked, the newest first, until every field is settled. A
commit that does not touch the file costs one look on the way to it. Fields that a type or a default adds stand in no
file and are not told.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, NoReturn

from apiserver.model import paths
from reconciler.history.fleet import FleetHistory
from reconciler.history.kinds import DeclaredId, resource_of, schema_of, workspace_id
from reconciler.history.leaves import DeclaredLeaf, Leaves
from reconciler.history.lines import Lines
from reconciler.history.moved import MoveHistory
from reconciler.history.objects import unread
from reconciler.history.people import People
from reconciler.history.result import ObjectBlame, SetField
from reconciler.history.watched import Watched
from reconciler.layout.alike import same
from reconciler.layout.manifest import Manifest
from reconciler.layout.source import Piece, PieceChange
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.repository.objects import CommitInfo
from reconciler.review.fields import HIDDEN, is_hidden


class DeclaredAt(NamedTuple):
    """An object in a commit: `place` is its workspace there."""

    commit: CommitInfo
    place: WorkspaceDir
    manifest: Manifest


class _Unreadable(Exception):
    """The file that declared it says nothing that can be read."""


class _Settled(NamedTuple):
    field: str
    at: DeclaredAt
    leaf: DeclaredLeaf


def blame(history: FleetHistory, people: People, found: DeclaredAt) -> ObjectBlame:
    """`found`: the object in the head of the history."""
    blaming = _Blaming(history, found)
    blaming.run()
    settled, notes = blaming.settled, blaming.notes
    order = dict.fromkeys(each.at.commit.id for each in settled)
    commits = sorted(order, key=blaming.walked.index)
    told = people.told(commits)
    key = DeclaredId.of(found.manifest)
    by_commit = {each.at.commit.id: each.at for each in settled}
    writers = (people.writers(each).of(*_home(by_commit[each.id])) for each in told)
    lines, resource = Lines(history), resource_of(found.manifest.gvk)
    by_field = {each.field: each for each in settled}
    fields = []
    for name in blaming.fields:
        _, at, leaf = by_field[name]
        value = HIDDEN if is_hidden(resource, name) else blaming.fields[name].value
        file, line = at.manifest.path, lines.of(at.commit, at.manifest, leaf.place)
        fields.append(SetField(name, value, commits.index(at.commit.id), file, line))
    head = found.manifest
    return ObjectBlame(
        key.told(_home(found)[0]),
        history.name,
        history.head,
        head.path,
        head.line,
        tuple(fields),
        tuple(zip(told, writers, strict=True)),
        tuple(notes),
    )


def _home(at: DeclaredAt) -> tuple[str, DeclaredId]:
    """The workspace that an object is in: a Workspace is its parent's."""
    path = at.place.path
    if at.manifest.path == at.place.manifest_path:
        return paths.parent(path) or "", workspace_id(path)
    return path, DeclaredId.of(at.manifest)


class _Blaming:
    """`fields`: those of the head; `walked`: the commits that were looked at, the newest first. Of what is rendered,
    which is made of more than one file, each commit is compared."""

    def __init__(self, history: FleetHistory, found: DeclaredAt) -> None:
        self._history, self._moves = history, MoveHistory(history)
        self._id = DeclaredId.of(found.manifest)
        self._leaves = Leaves(schema_of(found.manifest.gvk))
        self._now = found
        self.fields = self._leaves.of(found.manifest.value)
        self._open = dict(self.fields)
        self.settled: list[_Settled] = []
        self.notes: dict[str, None] = {}
        self.walked: list[str] = []

    def run(self) -> None:
        watch = Watched(self._history.repo, self._now.manifest.path)
        seen = watch.look(self._now.commit.tree)
        for commit, before in self._history.steps():
            self.walked.append(commit.id)
            last, seen = seen, watch.look(before.tree) if before is not None else seen
            if before is not None and seen == last and not self._now.manifest.origin.generator:
                # Where it could not be read it is as little known as in the commit before.
                self._now = self._now._replace(commit=before) if self._now.commit.id == commit.id else self._now
                continue
            try:
                found = self._found(before) if before is not None else None
            except _Unreadable:
                continue
            if found is None:
                self._settle(self._open)
                return
            self._compare(found)
            if not self._open:
                return
            if found.manifest.path != self._now.manifest.path:
                watch = Watched(self._history.repo, found.manifest.path)
                seen = watch.look(found.commit.tree)
            self._now = found

    def _compare(self, found: DeclaredAt) -> None:
        was = self._leaves.of(found.manifest.value)
        set_here = [
            name for name, leaf in self._open.items() if name not in was or not same(was[name].value, leaf.value)
        ]
        self._settle(set_here)
        for name in self._open:
            self._open[name] = was[name]

    def _settle(self, names: Iterable[str]) -> None:
        """By the oldest commit that is known to say what is said now."""
        here = self._leaves.of(self._now.manifest.value)
        for name in [*names]:
            del self._open[name]
            self.settled.append(_Settled(name, self._now, here[name]))

    def _found(self, before: CommitInfo) -> DeclaredAt | None:
        """The object in an earlier commit, None where that does not declare it."""
        now, history = self._now, self._history
        new, old = history.tree(now.commit.tree), history.tree(before.tree)
        there = old.at(now.place.directory) or self._moves.before(now.place, now.commit, before)
        if there is None:
            return None
        if now.manifest.path == now.place.manifest_path:
            return self._workspace(history.sources.workspace(old, there), there, before)
        changes = [*history.sources.of(new, now.place).changes(history.sources.of(old, there))]
        for change in changes:
            manifest = self._in(change.old)
            if manifest is not None:
                return DeclaredAt(before, there, manifest)
        if not any(self._in(change.new) for change in changes):
            return DeclaredAt(before, there, now.manifest)  # its file does not differ
        self._require_readable(changes, there, before)
        return None

    def _workspace(self, piece: Piece | None, there: WorkspaceDir, before: CommitInfo) -> DeclaredAt | None:
        """A Workspace, which its own directory declares under whatever name that has."""
        if piece is None:
            return None
        if not piece.manifests:
            self._pass_over(piece, before)
        return DeclaredAt(before, there, piece.manifests[0])

    def _pass_over(self, piece: Piece, commit: CommitInfo) -> NoReturn:
        self.notes[unread(piece, commit)] = None
        raise _Unreadable

    def _require_readable(self, changes: Iterable[PieceChange], there: WorkspaceDir, before: CommitInfo) -> None:
        """Where the file in which it stood cannot be read, it may have stood there."""
        file = there.directory + self._now.manifest.path[len(self._now.place.directory) :]
        for change in changes:
            if change.old is not None and change.old.name == file and change.old.problems:
                self._pass_over(change.old, before)

    def _in(self, piece: Piece | None) -> Manifest | None:
        every = piece.manifests if piece is not None else ()
        return next((each for each in every if DeclaredId.of(each) == self._id), None)
