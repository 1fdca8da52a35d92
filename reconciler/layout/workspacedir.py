"""One workspace's directory in a tree, and what its name and its tree's id tell.

Found by tree, compare and grafts.
"""

from __future__ import annotations

from typing import NamedTuple

from reconciler.layout.level import WORKSPACE_FILES, Level
from reconciler.repository.folder import joined
from reconciler.repository.objects import TreeEntry

_FEW = 8
"""Files of a workspace up to which they are kept with it."""
_MARK = "+"
"""In the id of a tenant's directory, behind the name of its repository."""


class WorkspaceDir(NamedTuple):
    """One workspace in one tree.

    `manifest` is its workspace.yaml (or .yml, .json), None for the root without one and for a workspace whose file was
    taken away while manifests remain. `spare`: further such files beside it, which is an error. `files`: its own, where
    it was looked into and has few and no directories, or is rendered; None: they are to be looked for. `theirs`: of one
    that stands in a tenant's repository the directory there, which `directory` follows from; "" for all others.
    """

    path: str
    directory: str
    manifest: TreeEntry | None
    tree: str
    spare: tuple[str, ...] = ()
    files: tuple[TreeEntry, ...] | None = None
    theirs: str = ""

    @property
    def manifest_path(self) -> str:
        return joined(self.theirs or self.directory, self.manifest.name if self.manifest else WORKSPACE_FILES[0])


def marked(repository: str, tree: str) -> str:
    """The id of a tenant's directory, as that of one of the fleet's tree."""
    return f"{repository}{_MARK}{tree}"


def is_marked(tree: str) -> bool:
    return _MARK in tree


def is_unknown(place: WorkspaceDir | None) -> bool:
    """Whether no more is known of a workspace in a tenant's repository than that it is there."""
    return place is not None and place.manifest is not None and not place.manifest.id


def unmarked(tree: str) -> str:
    """What `marked` was made of."""
    return tree.partition(_MARK)[2]


def named(directory: str) -> str:
    """The name of the workspace that a directory is. A colon in it must not look like a path's."""
    return directory.replace(":", "%3A")


def workspace_dir(path: str, directory: str, tree: str, level: Level, *, whole: bool = True) -> WorkspaceDir:
    """Of several workspace files the first in the order of WORKSPACE_FILES is the manifest. `whole`: the level shows
    all that is there."""
    markers = level.markers
    if len(markers) > 1:
        markers = sorted(markers, key=lambda e: WORKSPACE_FILES.index(e.name))
    spare = tuple(e.name for e in markers[1:])
    few = level.is_rendered or (not level.directories and len(level.files) <= _FEW)
    files = tuple(level.files) if whole and few else None
    return WorkspaceDir(path, directory, markers[0] if markers else None, tree, spare, files)
