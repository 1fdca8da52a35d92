"""Which source a workspace's directory is, and what is remembered of each repository's files.

Called wherever manifests of a tree are needed. A workspace.yaml is its parent's, and no source's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from apiserver.model import paths
from apiserver.model.kinds import kind_of
from apiserver.model.origins import Origin
from reconciler.layout.manifest import Manifest
from reconciler.layout.source import ManifestSource, Piece
from reconciler.layout.tree import WorkspaceDir, WorkspaceTree
from reconciler.layout.yamldoc import locate
from reconciler.loading.files import Files
from reconciler.loading.plainfiles import PlainFiles
from reconciler.repository.objects import Repository

Kind = Callable[[Files, WorkspaceTree, WorkspaceDir], ManifestSource | None]
"""Makes the source of a directory; None where the directory is not of this kind."""

KINDS: tuple[Kind, ...] = (PlainFiles,)
"""The first that takes a directory has it; the last takes all."""


class Sources:
    """Remembers files by repository."""

    def __init__(self) -> None:
        self._files: dict[Repository, Files] = {}

    def of(self, tree: WorkspaceTree, directory: WorkspaceDir) -> ManifestSource:
        files = self._files.get(tree.repo) or self._first(tree.repo)
        for kind in KINDS:
            found = kind(files, tree, directory)
            if found is not None:
                return found
        raise LookupError(directory.directory)

    def workspace(self, tree: WorkspaceTree, directory: WorkspaceDir) -> Piece | None:
        """The workspace.yaml of a directory, as its parent gets it; None where there is none."""
        if directory.manifest is None:
            return None
        files, name = self._files.get(tree.repo) or self._first(tree.repo), paths.base(directory.path)
        return files.read_workspace(directory.manifest_path, directory.manifest.id, name)

    def stated_uid(self, tree: WorkspaceTree, directory: WorkspaceDir) -> str:
        """The metadata.uid of its workspace.yaml, "" where none is stated."""
        if directory.manifest is None:
            return ""
        files = self._files.get(tree.repo) or self._first(tree.repo)
        return files.uid_of_workspace(directory.manifest_path, directory.manifest.id)

    def line_in_workspace(self, tree: WorkspaceTree, directory: WorkspaceDir, field: str) -> int:
        """Where a field of its workspace.yaml stands, 0 where there is none."""
        entry = directory.manifest
        return locate(tree.repo.blob(entry.id), 0, field, directory.manifest_path) if entry is not None else 0

    def _first(self, repo: Repository) -> Files:
        """What reads a repository that nothing was read of yet."""
        return self._files.setdefault(repo, Files(repo))


def generated(objects: Iterable[dict[str, Any]], origin: Origin) -> list[Manifest]:
    """What no file says, in the form of manifests."""
    out = []
    for value in objects:
        metadata = value["metadata"]
        out.append(Manifest(origin, 0, 0, kind_of(value), metadata.get("namespace") or "", metadata["name"], value))
    return out
