"""What can go wrong with git, as exceptions that say what to do. Raised by every module of this room."""

from __future__ import annotations

from apiserver.model.redaction import redact


class RepositoryError(Exception):
    """Base of this room's errors. `hint` says what to do, "" when there is nothing to say."""

    def __init__(self, what: str, hint: str = "") -> None:
        self.what = redact(what)
        self.hint = redact(hint)
        super().__init__(f"{self.what}: {self.hint}" if hint else self.what)


class RepositoryUnreadable(RepositoryError):
    """The repository is missing, damaged, away or of a kind that cannot be read. Deletes nothing; try again later."""


class StatusAway(RepositoryUnreadable):
    """The repository that the status branch has of its own does not answer, or nobody goes there."""


class DivergedStatus(RepositoryError):
    """Two branches hold a status and neither descends from the other; a person has to choose."""


class RefMoved(RepositoryError):
    """Compare-and-swap failed: the ref is not where the writer thought it was."""


class PushRejected(RepositoryError):
    """The source refused a push: somebody else moved the branch, or its rules forbid it."""


class NotMerged(RepositoryError):
    """What a branch holds and what is served cannot be made one without somebody who decides."""


class BranchCheckedOut(PushRejected):
    """The branch is checked out in a work tree of the source, whose files a push would leave behind."""
