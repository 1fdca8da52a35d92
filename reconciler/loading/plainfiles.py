"""The usual source: files of manifests in a workspace's directory, each a piece. See layout/source.

A directory that a program renders is a piece as well (renderings), which is not written to. Which files are the
workspace's own is layout/tree's to say, what differs between two trees layout/compare's, and how a text is edited
layout/edit's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator
from functools import cached_property
from typing import Any

from reconciler.layout import edit
from reconciler.layout.compare import changes
from reconciler.layout.draft import Draft
from reconciler.layout.errors import BadFile
from reconciler.layout.level import problem
from reconciler.layout.manifest import Manifest, may_say, read
from reconciler.layout.renderedaround import RenderedAround
from reconciler.layout.source import ManifestSource, NotWritten, Piece, PieceChange, all_changes
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.layout.yamldoc import locate
from reconciler.loading.files import Files
from reconciler.loading.renderings import RenderedDirectory
from reconciler.repository.objects import TreeEntry

Object = dict[str, Any]


class PlainFiles:
    """Reads through `files`, which remembers contents."""

    def __init__(self, files: Files, tree: WorkspaceTree, directory: WorkspaceDir) -> None:
        self._files, self._tree, self._directory = files, tree, directory

    def pieces(self, besides: Container[str] = ()) -> Iterator[Piece]:
        for path, entry in self._entries():
            if path not in besides:
                yield self._piece(path, entry)

    def changes(self, old: ManifestSource, about: Collection[bytes] = ()) -> Iterator[PieceChange]:
        if not isinstance(old, PlainFiles):
            yield from all_changes(self, old)
            return
        here, there = self._tree, old._tree
        if here.tree_id == there.tree_id and here.claims == there.claims and self._directory == old._directory:
            return
        seen = False
        for change in changes(self._tree, self._directory, old._tree, old._directory):
            if "rendered" in (change.old and change.old.kind, change.new and change.new.kind):
                seen = True
                continue
            sides = (self, change.new), (old, change.old)
            if about and not any(source._mentions(change.path, entry, about) for source, entry in sides):
                continue
            before = old._piece(change.path, change.old) if change.old is not None else None
            now = self._piece(change.path, change.new) if change.new is not None else None
            yield PieceChange(change.path, before, now)
        yield from self._rendered_changes(old, seen=seen)

    def _rendered_changes(self, old: PlainFiles, *, seen: bool) -> Iterator[PieceChange]:
        """Of what is rendered, which is made of more than its directory. `seen`: such a directory differs itself."""
        was = old._rendered
        if not was and not seen:
            self._files.renderings.note_none(self._tree, self._directory)
            return
        now = self._rendered
        for path in sorted(was.keys() | now.keys()):
            before, after = was.get(path), now.get(path)
            if before is None or after is None or before.says != after.says:
                yield PieceChange(path, old._made(before), self._made(after))

    def line(self, manifest: Manifest, field: str = "") -> int:
        if manifest.origin.generator:
            return 0
        entry = self._tree.repo.entry_at(self._tree.tree_id, manifest.path) if field else None
        if entry is None or entry.kind != "blob":
            return manifest.line
        try:
            return locate(self._tree.repo.blob(entry.id), manifest.index, field, manifest.path) or manifest.line
        except (BadFile, KeyError, ValueError):
            return manifest.line

    def mentioning(self, *texts: bytes) -> Iterator[Manifest]:
        for path, entry in self._entries():
            if entry.kind == "rendered":
                yield from self._piece(path, entry).manifests
            elif self._mentions(path, entry, texts):
                yield from read(self._tree.repo.blob(entry.id), path).objects

    def editor(self, draft: Draft) -> FileEditor:
        return FileEditor(draft, self._files, RenderedAround(self._tree, self._directory).marker)

    def written(self) -> WrittenFiles:
        return WrittenFiles(self._files, self._tree, self._directory)

    def rendered(self) -> Collection[RenderedDirectory]:
        """Its directories that are rendered."""
        return self._rendered.values()

    @cached_property
    def _rendered(self) -> dict[str, RenderedDirectory]:
        return {each.path: each for each in self._files.renderings.of(self._tree, self._directory)}

    def _made(self, found: RenderedDirectory | None) -> Piece | None:
        return self._files.renderings.piece(found) if found is not None else None

    def _mentions(self, path: str, entry: TreeEntry | None, texts: Collection[bytes]) -> bool:
        if entry is None or problem(path, entry) is not None:
            return False
        data = self._tree.repo.blob(entry.id)
        return any(may_say(data, text) for text in texts)

    def _entries(self) -> Iterator[tuple[str, TreeEntry]]:
        return self._tree.files(self._directory)

    def _piece(self, path: str, entry: TreeEntry) -> Piece:
        refused = problem(path, entry)
        if refused is not None:
            return Piece(path, (), (refused,))
        if entry.kind == "rendered":
            return self._files.renderings.piece(self._rendered[path])
        return self._files.read(path, entry.id)


class WrittenFiles(PlainFiles):
    """The same without what is rendered: what somebody wrote as it is."""

    def _entries(self) -> Iterator[tuple[str, TreeEntry]]:
        return ((path, entry) for path, entry in super()._entries() if entry.kind != "rendered")

    def _rendered_changes(self, old: PlainFiles, *, seen: bool) -> Iterator[PieceChange]:  # noqa: ARG002
        """Of none."""
        yield from ()


class FileEditor:
    """Keeps every byte that does not have to change. `files`: hears of new ones, so that whoever judges them need not
    read them again; `rendered`: finds the file that makes a directory around another file a rendered one, "" for
    none."""

    def __init__(self, draft: Draft, files: Files, rendered: Callable[[str], str]) -> None:
        self._draft, self._files, self._rendered = draft, files, rendered

    def find(self, name: str) -> Iterator[Manifest]:
        self._require_file(name)
        data = self._draft.read(name)
        yield from read(data, name).objects if data is not None else ()

    def replace(self, manifest: Manifest, value: Object) -> bool:
        self._require_file(manifest.path)
        return self._draft.write(manifest.path, edit.replace(*self._at(manifest), value))

    def remove(self, manifest: Manifest) -> bool:
        self._require_file(manifest.path)
        return self._draft.write(manifest.path, edit.remove(*self._at(manifest)))

    def add(self, name: str, value: Object) -> bool:
        self._require_file(name)
        there = self._draft.read(name)
        if there is not None:
            return self._draft.write(name, edit.add(there, name, value))
        data, document = edit.new(name, value)
        self._files.note(name, data, document)
        return self._draft.write(name, data)

    def _require_file(self, name: str) -> None:
        """Raises NotWritten for what no file says by itself."""
        marker = self._rendered(name)
        directory = marker.rpartition("/")[0]
        if marker and name == marker:
            raise NotWritten(f"it is rendered of {directory}: change the files that {marker} names, commit and push")
        if marker:
            text = f"all of {directory} is rendered, so no file can be added for it: add it to what {marker} names"
            raise NotWritten(f"{text}, commit and push")

    def _at(self, manifest: Manifest) -> tuple[bytes, str, int]:
        return self._draft.read(manifest.path) or b"", manifest.path, manifest.index
