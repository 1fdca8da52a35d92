"""The repositories that commits are read from, by name: the fleet's own, and those of sources, one for each.

Whoever reads a commit asks here for its repository, so that a workspace whose content stands elsewhere is read from
there, and one whose repository nobody knows from nowhere. What there is of sources, the room sourcing brings.
"""

from __future__ import annotations

from pathlib import Path

from apiserver.model.commits import CommitRef
from reconciler.repository.errors import RepositoryError, RepositoryUnreadable
from reconciler.repository.objects import Repository
from reconciler.repository.sourcestore import SourceStore


class Repositories:
    """`own`: the fleet's. `sources`: the directory of sources' repositories; None where there are none."""

    def __init__(self, own: Repository, sources: Path | None = None) -> None:
        self.own = own
        self.sources = SourceStore(sources) if sources is not None else None

    def beside(self, own: Repository) -> Repositories:
        """The same sources beside another repository of the fleet's."""
        out = Repositories(own)
        out.sources = self.sources
        return out

    def of(self, commit: CommitRef) -> Repository:
        """The one that a commit is of; whether it has the commit is not looked at. Safe from every thread; ask anew
        for each judgement, since a source's may be made anew. Raises RepositoryUnreadable where there is none of that
        name (here, or yet)."""
        if not commit.repository:
            return self.own
        found = self.sources.open(commit.repository) if self.sources is not None else None
        if found is None:
            raise RepositoryUnreadable(
                f"commit {commit} is of the repository {commit.repository}, which this fleet does not have"
            )
        return found

    def follows(self, commit: CommitRef, older: CommitRef) -> bool:
        """Whether a commit is `older` or descends from it, in the same repository; False where it is not here. Safe
        from every thread."""
        if commit.repository != older.repository:
            return False
        try:
            repo = self.of(commit)
        except RepositoryError:
            return False
        return repo.has(commit.id) and repo.is_ancestor(older.id, commit.id)

    def let_go(self) -> None:
        """Closes what was repacked since it was opened (see Repository.let_go). Raises RepositoryUnreadable."""
        self.own.let_go()
        if self.sources is not None:
            self.sources.let_go()
