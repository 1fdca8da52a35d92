"""The usual source: files of manifests in a workspace's directory, each a piece. See layout/source.

Which files are the workspace's own is layout/tree's to say, what differs between two trees layout/compare's, and how a
text is edited layout/edit's.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator
from typing import Any

from reconciler.layout import edit
from reconciler.layout.compare import changes
from reconciler.layout.draft import Draft
from reconciler.layout.errors import BadFile
from reconciler.layout.manifest import Manifest, may_say, read
from reconciler.layout.source import ManifestSource, Piece, PieceChange, all_changes
from reconciler.layout.tree import WorkspaceDir, WorkspaceTree, problem
from reconciler.layout.yamldoc import locate
from reconciler.loading.files import Files
from reconciler.repository.objects import TreeEntry

Object = dict[str, Any]


class PlainFiles:
    """Reads through `files`, which remembers contents."""

    def __init__(self, files: Files, tree: WorkspaceTree, directory: WorkspaceDir) -> None:
        self._files, self._tree, self._directory = files, tree, directory

    def pieces(self, besides: Container[str] = ()) -> Iterator[Piece]:
        for path, entry in self._tree.files(self._directory):
            if path not in besides:
                yield self._piece(path, entry)

    def changes(self, old: ManifestSource, about: Collection[bytes] = ()) -> Iterator[PieceChange]:
        if not isinstance(old, PlainFiles):
            yield from all_changes(self, old)
            return
        for change in changes(self._tree, self._directory, old._tree, old._directory):
            sides = (self, change.new), (old, change.old)
            if about and not any(source._mentions(change.path, entry, about) for source, entry in sides):
                continue
            before = old._piece(change.path, change.old) if change.old is not None else None
            now = self._piece(change.path, change.new) if change.new is not None else None
            yield PieceChange(change.path, before, now)

    def line(self, manifest: Manifest, field: str = "") -> int:
        entry = self._tree.repo.entry_at(self._tree.tree_id, manifest.path) if field else None
        if entry is None or entry.kind != "blob":
            return manifest.line
        try:
            return locate(self._tree.repo.blob(entry.id), manifest.index, field, manifest.path) or manifest.line
        except (BadFile, KeyError, ValueError):
            return manifest.line

    def mentioning(self, *texts: bytes) -> Iterator[Manifest]:
        for path, entry in self._tree.files(self._directory):
            if self._mentions(path, entry, texts):
                yield from read(self._tree.repo.blob(entry.id), path).objects

    def editor(self, draft: Draft) -> FileEditor:
        return FileEditor(draft)

    def _mentions(self, path: str, entry: TreeEntry | None, texts: Collection[bytes]) -> bool:
        if entry is None or problem(path, entry) is not None:
            return False
        data = self._tree.repo.blob(entry.id)
        return any(may_say(data, text) for text in texts)

    def _piece(self, path: str, entry: TreeEntry) -> Piece:
        refused = problem(path, entry)
        return Piece(path, (), (refused,)) if refused is not None else self._files.read(path, entry.id)


class FileEditor:
    """Keeps every byte that does not have to change."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft

    def find(self, name: str) -> Iterator[Manifest]:
        data = self._draft.read(name)
        yield from read(data, name).objects if data is not None else ()

    def replace(self, manifest: Manifest, value: Object) -> bool:
        return self._draft.write(manifest.path, edit.replace(*self._at(manifest), value))

    def remove(self, manifest: Manifest) -> bool:
        return self._draft.write(manifest.path, edit.remove(*self._at(manifest)))

    def add(self, name: str, value: Object) -> bool:
        return self._draft.write(name, edit.add(self._draft.read(name), name, value))

    def _at(self, manifest: Manifest) -> tuple[bytes, str, int]:
        return self._draft.read(manifest.path) or b"", manifest.path, manifest.index
