"""What git said of a workspace earlier: from the commit that an inventory on a target names to the served one.

Asked by declared and placed, before anything is pruned that the store does not explain. Only what was served counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from apiserver.model import commits, paths
from apiserver.model.commits import NONE, CommitRef
from apiserver.registry.tree import WorkspaceRecord
from reconciler.layout.manifest import Manifest
from reconciler.layout.source import ManifestSource
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.loading.sources import Sources
from reconciler.rendering.rendering import NOWHERE, Renders
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.keep import left_behind
from reconciler.repository.repositories import Repositories

_LONGEST = 400
"""Characters of a workspace's path."""
_FAR = 500
"""Commits looked at between the two."""


def is_said(path: str, commit: CommitRef) -> bool:
    """Whether these can be a workspace and a commit of it: what a target says may be anything."""
    return len(path) <= _LONGEST and paths.is_path(path) and bool(commit)


def served_of(record: WorkspaceRecord, commit: CommitRef) -> CommitRef:
    """The commit that is served of a workspace, of the repository that another commit of it is of: the fleet's, or the
    one that its content comes from. Of any other NONE: what it had from there nothing tells."""
    if not commit.repository:
        return record.head
    served = commits.parse(record.source.get("commit", ""))
    return served if served.repository == commit.repository else NONE


class PastObjects:
    """Everything raises RepositoryError."""

    def __init__(self, repositories: Repositories, renders: Renders = NOWHERE) -> None:
        self._repositories = repositories
        self._sources = Sources(renders, repositories)

    def since(self, commit: CommitRef, served: CommitRef) -> list[CommitRef]:
        """`commit` and what followed it along first parents, up to `served`; `commit` alone where that is far, where it
        was merged in, and where the branch went elsewhere from it. Empty where it was never served, and where it is
        ahead of what is served (of a workspace that was recovered at an earlier commit): it tells nothing of what goes.
        """
        if not served or commit.repository != served.repository:
            return []
        repo = self._repositories.of(commit)
        between = repo.first_parents(commit.id, served.id)
        if between is not None:
            after = [commit._replace(id=each) for each in between] if len(between) <= _FAR else []
            return [commit, *after]
        if not repo.has(commit.id) or repo.is_ancestor(served.id, commit.id):
            return []
        return [commit] if repo.is_ancestor(commit.id, served.id) or left_behind(repo, commit.id) else []

    def workspace(
        self, path: str, commit: CommitRef, within: str = "", border: str | None = None
    ) -> tuple[WorkspaceTree, WorkspaceDir] | None:
        """Where a commit has the workspace: one of its source, in the directory `within`. `border`: see
        Sources.sourced."""
        if commit.repository:
            return self._sources.sourced(path, commit, within, border)
        repo = self._repositories.of(commit)
        tree = WorkspaceTree(repo, repo.commit(commit.id).tree)
        directory = tree.find(path)
        return (tree, directory) if directory is not None else None

    def ever(self, tree: WorkspaceTree, directory: WorkspaceDir) -> Iterator[Iterator[Manifest]]:
        """What of it can be read: of what it said itself, and of what it was pinned to. Which of both was served, the
        clock said."""
        return map(_said, self._sources.ever(tree, directory))

    def served(self, tree: WorkspaceTree, directory: WorkspaceDir, pin: Mapping[str, str]) -> Iterator[Manifest]:
        """The same of what is served. `pin`: see WorkspaceRecord."""
        return _said(self._sources.of(*self._sources.served(tree, directory, pin)))

    def says(self, tree: WorkspaceTree, directory: WorkspaceDir) -> str:
        """Where two directories say the same, the same manifests are in both."""
        return " ".join([directory.tree, *(each.says for each in self._sources.rendered(tree, directory))])


def _said(source: ManifestSource) -> Iterator[Manifest]:
    """Of a directory that cannot be rendered now nobody knows what it said."""
    for piece in source.pieces():
        if piece.generator and piece.problems:
            raise RepositoryUnreadable(str(piece.problems[0]))
        yield from piece.manifests
