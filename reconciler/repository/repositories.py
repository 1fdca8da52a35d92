"""The repositories that commits are read from, by name: today the fleet's own and no other.

Whoever reads a commit asks here for its repository, so that a workspace whose content stands elsewhere is read from
there, and one whose repository nobody knows from nowhere.
"""

from __future__ import annotations

from apiserver.model.commits import CommitRef
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.objects import Repository


class Repositories:
    """`own`: the fleet's."""

    def __init__(self, own: Repository) -> None:
        self.own = own
        self._known = {"": own}

    def of(self, commit: CommitRef) -> Repository:
        """The one that a commit is of. Raises RepositoryUnreadable where there is none of that name."""
        found = self._known.get(commit.repository)
        if found is None:
            raise RepositoryUnreadable(
                f"commit {commit} is of the repository {commit.repository}, which this fleet does not have"
            )
        return found
