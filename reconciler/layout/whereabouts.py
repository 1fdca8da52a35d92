"""Where workspaces stand, remembered for as many as a commit touches.

Filled by compare, read by the loader until each workspace is judged. A workspace's directory as objects weighs as much
as all else that a load keeps of it; packed it takes a third. Of those that have nothing but the same workspace.yaml
what they have in common is kept once, and by that they are known to be alike.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.repository.objects import TreeEntry

_SHARED = 1024
"""How much of what workspaces have in common is known to be so."""


class Bare(NamedTuple):
    """A workspace that has nothing but its workspace.yaml: its directory, and all else that there is to say of its
    place, which is the same for whoever is like it."""

    directory: str
    common: bytes


class Whereabouts:
    """Of each path the workspace that was found first."""

    def __init__(self) -> None:
        self._packed: dict[str, bytes | Bare] = {}
        self._common: dict[bytes, bytes] = {}
        self._last: WorkspaceDir | None = None
        """Who was asked for last: each is asked for several times in a row."""

    def __iter__(self) -> Iterator[str]:
        return iter(self._packed)

    def __or__(self, other: Whereabouts) -> Whereabouts:
        """Where `other` says otherwise, it counts."""
        out = Whereabouts()
        out._packed = self._packed | other._packed
        return out

    def note(self, place: WorkspaceDir) -> bool:
        """Whether it is the first of its path."""
        if place.path in self._packed:
            return False
        self._packed[place.path] = self._bare(place) if place.files == () and not place.theirs else _pack(place)
        return True

    def note_like(self, path: str, directory: str, other: str) -> None:
        """A workspace whose place is that of another one, which was noted, but for its path and directory."""
        bare = self.bare(other)
        if bare is None:
            place = self.get(other)
            assert place is not None
            self.note(place._replace(path=path, directory=directory))
        elif path not in self._packed:
            self._packed[path] = Bare(directory, bare.common)

    def bare(self, path: str) -> Bare | None:
        """Of a workspace that has nothing but its workspace.yaml and stands in the fleet's own repository."""
        found = self._packed.get(path)
        return found if isinstance(found, Bare) else None

    def get(self, path: str) -> WorkspaceDir | None:
        last = self._last
        if last is not None and last.path == path:
            return last
        packed = self._packed.get(path)
        if packed is None:
            return None
        if isinstance(packed, Bare):
            self._last = _unpack(path, packed.common)._replace(directory=packed.directory)
        else:
            self._last = _unpack(path, packed)
        return self._last

    def forget(self, path: str) -> None:
        self._packed.pop(path, None)
        if self._last is not None and self._last.path == path:
            self._last = None

    def forget_all(self, some: Iterable[str]) -> None:
        for path in some:
            self._packed.pop(path, None)
        self._last = None

    def _bare(self, place: WorkspaceDir) -> Bare:
        common = _pack(place, "")
        if len(self._common) >= _SHARED:
            self._common.clear()
        return Bare(place.directory, self._common.setdefault(common, common))


def _pack(place: WorkspaceDir, directory: str | None = None) -> bytes:
    """In the form of this very interpreter: it never leaves the process. `directory`: instead of its own."""
    manifest = _plain(place.manifest) if place.manifest is not None else None
    files = [_plain(entry) for entry in place.files] if place.files is not None else None
    return marshal.dumps(
        (place.directory if directory is None else directory, manifest, place.tree, place.spare, files, place.theirs)
    )


def _plain(entry: TreeEntry) -> tuple[str, str, str, bool]:
    return entry.name, entry.id, entry.kind, entry.executable


def _unpack(path: str, packed: bytes) -> WorkspaceDir:
    directory, manifest, tree, spare, files, theirs = marshal.loads(packed)  # noqa: S302  (our own bytes, of this process)
    return WorkspaceDir(
        path,
        directory,
        TreeEntry(*manifest) if manifest is not None else None,
        tree,
        spare,
        tuple(TreeEntry(*entry) for entry in files) if files is not None else None,
        theirs,
    )
