"""The workspace trees of commits, opened once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

from apiserver.model.commits import NONE, CommitRef
from reconciler.layout.grouping import Grouping
from reconciler.layout.tree import WorkspaceTree
from reconciler.repository.objects import Repository
from reconciler.repository.repositories import Repositories

Claims = frozenset[tuple[str, str]]

_KEPT = 64


class Trees:
    """`at(commit)` is cheap: a tree is read where it is looked at.

    `claims`: the directories that lost their workspace.yaml and hold manifests still, as of the served commit. Where
    the file is there, or the directory is not, they mean nothing; in the tree of an earlier commit others counted.
    """

    def __init__(self, repositories: Repositories) -> None:
        self.repositories = repositories
        self._grouping: dict[str, Grouping] = {}
        self._open: OrderedDict[tuple[CommitRef, Claims], WorkspaceTree] = OrderedDict()
        self.claims = {}

    def aside(self, repositories: Repositories) -> Trees:
        """Trees of other repositories that know what these do. What is found out there stays there."""
        out, known = Trees(repositories), self._grouping.get(NONE.repository)
        if known is not None:
            out._grouping[NONE.repository] = known.aside(repositories.own)
        return out

    @property
    def claims(self) -> Mapping[str, str]:
        return self._claims

    @claims.setter
    def claims(self, found: Mapping[str, str]) -> None:
        self._claims, self._key = found, frozenset(found.items())

    def at(self, commit: CommitRef, claims: Mapping[str, str] | None = None) -> WorkspaceTree:
        """`claims`: those that counted there, where they are not those of the served commit. Raises
        RepositoryUnreadable where the commit is not there."""
        key = commit, self._key if claims is None else frozenset(claims.items())
        found = self._open.get(key)
        if found is None:
            found = self._open[key] = self.apart(commit, claims)
            if len(self._open) > _KEPT:
                self._open.popitem(last=False)
        return found

    def apart(self, commit: CommitRef, claims: Mapping[str, str] | None = None) -> WorkspaceTree:
        """The same for one caller: who compares it with a tree that was not served before it completes no other's."""
        repo = self.repositories.of(commit)
        grouping = self._grouping.get(commit.repository)
        if grouping is None:
            grouping = self._grouping[commit.repository] = Grouping(repo)
        return self._tree(repo, repo.commit(commit.id).tree, self.claims if claims is None else claims, grouping)

    def _tree(self, repo: Repository, tree_id: str, claims: Mapping[str, str], grouping: Grouping) -> WorkspaceTree:
        return WorkspaceTree(repo, tree_id, claims, grouping)
