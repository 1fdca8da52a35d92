"""The tree of a status commit while it is made, piece by piece: what is in memory does not follow what is recorded.

Called by the writer. Pieces are put together until they are worth a pack of git's, since each pack is a process and a
flush, and the folders on the way to a piece's files are written with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconciler.repository.difference import walk
from reconciler.repository.objects import Repository
from reconciler.repository.write import Blob, edit_tree, object_name
from reconciler.statusbranch import format
from reconciler.statusbranch.render import Files

MOST = 16_384
"""Files that wait, and one more piece."""


class StatusContent:
    """`base`: the tree that the pieces change; None: they are all there is."""

    def __init__(self, repo: Repository, base: str | None) -> None:
        self._repo, self._tree, self._anew = repo, base, base is None
        self._waiting: dict[str, bytes | Blob | None] = {}

    def add(self, pieces: Iterable[Files]) -> None:
        """What a later one says of a file counts, and what it takes away goes with all that earlier ones put there."""
        for files in pieces:
            self._take_away({path for path, data in files.items() if data is None})
            for path, data in files.items():
                self._waiting[path] = self._known(data) if data is not None and self._anew else data
            if len(self._waiting) >= MOST:
                self._write()

    def keep(self, tree: str, folder: str) -> None:
        """The files of a workspace's folder as another tree has them."""
        found = self._repo.tree_at(tree, folder)
        for path, entry in walk(self._repo, found, folder) if found is not None else ():
            if format.owner_of(path) == folder:
                self._waiting[path] = Blob(entry.id)

    def keep_file(self, tree: str, path: str) -> None:
        """A file as another tree has it."""
        entry = self._repo.entry_at(tree, path)
        if entry is not None:
            self._waiting[path] = Blob(entry.id)

    def tree(self) -> str:
        """Of all pieces."""
        self._write()
        assert self._tree is not None
        return self._tree

    def _take_away(self, gone: set[str]) -> None:
        if gone and self._waiting:
            self._waiting = {path: data for path, data in self._waiting.items() if gone.isdisjoint(_above(path))}

    def _write(self) -> None:
        if self._waiting or self._tree is None:
            self._tree = edit_tree(self._repo, self._tree, self._waiting)
            self._waiting = {}

    def _known(self, data: bytes) -> bytes | Blob:
        """Written anew, most of it is what git has already."""
        name = object_name(3, data)
        return Blob(name) if self._repo.has(name) else data


def _above(path: str) -> Iterator[str]:
    """The directories that a path lies in."""
    while path := path.rpartition("/")[0]:
        yield path
