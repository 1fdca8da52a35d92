"""The workspace trees of commits, opened once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

from reconciler.layout.tree import WorkspaceTree
from reconciler.repository.objects import Repository

_KEPT = 64


class Trees:
    """`at(commit)` is cheap: a tree is read where it is looked at.

    `claims`: the directories that lost their workspace.yaml and hold manifests still. They are given to every tree that
    is opened: where the file is there, or the directory is not, they mean nothing.
    """

    def __init__(self, repo: Repository) -> None:
        self.claims: Mapping[str, str] = {}
        self._repo = repo
        self._open: OrderedDict[str, WorkspaceTree] = OrderedDict()

    def at(self, commit: str) -> WorkspaceTree:
        """Raises RepositoryUnreadable where the commit is not there."""
        found = self._open.get(commit)
        if found is None:
            found = self._open[commit] = WorkspaceTree(self._repo, self._repo.commit(commit).tree, self.claims)
            if len(self._open) > _KEPT:
                self._open.popitem(last=False)
        return found
