"""What a commit did to the objects that a workspace's files declare: nothing is loaded, files are compared.

Called by log. Cost follows the files that differ. What cannot be read says nothing: it is noted, and what comes after
it is compared with what was there before, as a server does that holds the workspace meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from apiserver.model import paths
from reconciler.history.fleet import FleetHistory
from reconciler.history.follow import TouchedWorkspace
from reconciler.history.kinds import AskedObjects, DeclaredId, workspace_id
from reconciler.history.result import ObjectStep
from reconciler.layout.alike import same
from reconciler.layout.level import RENDERED_BY
from reconciler.layout.manifest import Manifest
from reconciler.layout.source import Piece, PieceChange
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.loading.changeset import ChangeKind
from reconciler.repository.objects import CommitInfo


class Differences(NamedTuple):
    """`objects`: by name; `unread`: files that could not be read, with their commits, in words."""

    objects: list[ObjectStep]
    unread: list[str]


class _Sides(NamedTuple):
    before: dict[DeclaredId, Manifest]
    after: dict[DeclaredId, Manifest]


def compared(history: FleetHistory, at: TouchedWorkspace, asked: AskedObjects) -> Differences:
    """The objects that are asked about, and the workspace.yaml where that says something else."""
    return _Comparing(history, at, asked).run()


class _Comparing:
    def __init__(self, history: FleetHistory, at: TouchedWorkspace, asked: AskedObjects) -> None:
        self._history, self._at, self._asked = history, at, asked
        self._unread: dict[str, None] = {}

    def run(self) -> Differences:
        sides = _Sides({}, {})
        for change in self._changes():
            new = self._read(change.new)
            if new is None:
                continue  # it says nothing, so nothing goes
            old = change.old.manifests if change.old is not None else ()
            if change.old is not None and change.old.problems:
                old = self._last_read(change.name)
            for side, manifests in zip(sides, (old, new), strict=True):
                for manifest in manifests:
                    side.setdefault(DeclaredId.of(manifest), manifest)
        found = [step for key in sides.before.keys() | sides.after.keys() if (step := self._step(key, sides))]
        found.sort(key=lambda step: (step.object.kind, step.object.namespace, step.object.name))
        return Differences([*self._workspace(), *found], [*self._unread])

    def _changes(self) -> Iterator[PieceChange]:
        history, at = self._history, self._at
        new = history.sources.of(history.tree(at.commit.tree), at.new) if at.new is not None else None
        old = (
            history.sources.of(history.tree(at.before.tree), at.old)
            if at.before is not None and at.old is not None
            else None
        )
        if new is not None and old is not None:
            yield from new.changes(old)
        elif new is not None:
            yield from (PieceChange(piece.name, None, piece) for piece in new.pieces())
        elif old is not None:
            yield from (PieceChange(piece.name, piece, None) for piece in old.pieces())

    def _read(self, piece: Piece | None) -> tuple[Manifest, ...] | None:
        """None where it cannot be read now."""
        if piece is None:
            return ()
        if piece.problems:
            self._unread[unread(piece, self._at.commit)] = None
            return None
        return piece.manifests

    def _last_read(self, file: str) -> tuple[Manifest, ...]:
        """What a file said before it could not be read."""
        seen = ""
        begin = self._at.before
        for commit in self._history.chain(begin.id) if begin is not None else ():
            entry = self._history.repo.entry_at(commit.tree, file)
            if entry is None or entry.kind != "blob":
                return ()
            above, _, name = file.rpartition("/")
            if name in RENDERED_BY:
                entry = self._history.repo.entry_at(commit.tree, above) or entry
            if entry.id != seen:
                seen = entry.id
                place = self._history.tree(commit.tree).owner(file)
                piece = self._piece(commit, place, file)
                if piece is not None and not piece.problems:
                    return piece.manifests
        return ()

    def _piece(self, commit: CommitInfo, place: WorkspaceDir | None, file: str) -> Piece | None:
        if place is None:
            return None
        pieces = self._history.sources.of(self._history.tree(commit.tree), place).pieces()
        return next((piece for piece in pieces if piece.name == file), None)

    def _step(self, key: DeclaredId, sides: _Sides) -> ObjectStep | None:
        """None where it says the same in the same place, or is not asked about."""
        if not self._asked.takes(key):
            return None
        old, new = sides.before.get(key), sides.after.get(key)
        if new is None or old is None:
            return self._told(key, new, ChangeKind.CREATED) if new else self._told(key, old, ChangeKind.DELETED)
        if not same(old.value, new.value):
            return self._told(key, new, ChangeKind.CONFIGURED)
        if self._inside(old.path, self._at.old) == self._inside(new.path, self._at.new):
            return None
        return self._told(key, new, ChangeKind.MOVED, old.path)

    def _told(self, key: DeclaredId, manifest: Manifest | None, change: ChangeKind, was: str = "") -> ObjectStep:
        place = self._at.new or self._at.old
        path, line = (manifest.path, manifest.line) if manifest is not None else ("", 0)
        return ObjectStep(key.told(place.path if place is not None else ""), change, path, line, was)

    def _inside(self, file: str, place: WorkspaceDir | None) -> str:
        """A file's name within its workspace's directory."""
        return file.removeprefix(f"{place.directory}/") if place is not None else file

    def _workspace(self) -> Iterator[ObjectStep]:
        """The workspace's own manifest, which is its parent's: where it came or goes, that is the workspace."""
        history, at = self._history, self._at
        if at.new is None or at.old is None or at.before is None:
            return
        new = history.sources.workspace(history.tree(at.commit.tree), at.new)
        old = history.sources.workspace(history.tree(at.before.tree), at.old)
        key = workspace_id(at.new.path)
        if new == old or not self._asked.takes(key):
            return
        said, was = self._read(new), old.manifests if old is not None else ()
        if said is None:
            return
        before, after = (each[0].value if each else None for each in (was, said))
        if before is None or after is None or not same(_nameless(before), _nameless(after)):
            change = ChangeKind.CONFIGURED if said else ChangeKind.DELETED
            found = self._told(key, said[0] if said else None, change)
            file = found.file or at.old.manifest_path
            name = found.object._replace(workspace=paths.parent(at.new.path) or "")
            yield found._replace(file=file, object=name)


def unread(piece: Piece, commit: CommitInfo) -> str:
    """What is told of a piece that cannot be read in a commit: nothing of its text, which may be a Secret's."""
    error = piece.problems[0]
    place = f"{error.path}:{error.line}" if error.line else error.path
    return f"{place} of {commit.id:.10} cannot be read, and is passed over"


def _nameless(value: dict[str, object]) -> dict[str, object]:
    """A workspace that moves has another name."""
    metadata = value.get("metadata")
    return {**value, "metadata": {**metadata, "name": ""} if isinstance(metadata, dict) else metadata}
