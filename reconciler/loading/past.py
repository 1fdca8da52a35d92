"""What git said of a workspace earlier: from the commit that an inventory on a target names to the served one.

Asked by declared and placed, before anything is pruned that the store does not explain. Only what was served counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from apiserver.model import paths
from reconciler.layout.manifest import Manifest
from reconciler.layout.tree import WorkspaceDir, WorkspaceTree
from reconciler.loading.sources import Sources
from reconciler.repository.keep import left_behind
from reconciler.repository.objects import Repository

_COMMIT = re.compile(r"[0-9a-f]{40}")
_LONGEST = 400
"""Characters of a workspace's path."""
_FAR = 500
"""Commits looked at between the two."""


def is_said(path: str, commit: str) -> bool:
    """Whether these can be a workspace and a commit: what a target says may be anything."""
    return len(path) <= _LONGEST and paths.is_path(path) and _COMMIT.fullmatch(commit) is not None


class Past:
    """Everything raises RepositoryError."""

    def __init__(self, repo: Repository) -> None:
        self._repo = repo
        self._sources = Sources(repo)

    def since(self, commit: str, served: str) -> list[str]:
        """`commit` and what followed it along first parents, up to `served`; `commit` alone where that is far, where it
        was merged in, and where the branch went elsewhere from it. Empty where it was never served: it tells nothing.
        """
        if not served:
            return []
        between = self._repo.first_parents(commit, served)
        if between is not None:
            return [commit, *between] if len(between) <= _FAR else [commit]
        known = self._repo.has(commit)
        return [commit] if known and (self._repo.is_ancestor(commit, served) or left_behind(self._repo, commit)) else []

    def workspace(self, path: str, commit: str) -> tuple[WorkspaceTree, WorkspaceDir] | None:
        """Where a commit has the workspace."""
        tree = WorkspaceTree(self._repo, self._repo.commit(commit).tree)
        directory = tree.find(path)
        return (tree, directory) if directory is not None else None

    def manifests(self, tree: WorkspaceTree, directory: WorkspaceDir) -> Iterator[Manifest]:
        """What of it can be read."""
        for file, entry in tree.files(directory):
            if entry.kind == "blob":
                yield from self._sources.read(file, entry.id).manifests
