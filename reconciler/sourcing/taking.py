"""What a remote sent becomes the repository's once git has found it whole, and not before.

Called by visit.py with a pack that uploadpack.py has received into a file. git indexes and checks it beside the
repository's objects (repository/incoming), with a share of the machine and with nothing of its configuration, since
what is judged is a stranger's. What is refused leaves nothing behind.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import IO

from reconciler.repository.command import GitAnswer, Patience, Share, git
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.incoming import incoming
from reconciler.repository.objects import Repository
from reconciler.sourcing.connection import VisitTime
from reconciler.sourcing.faults import SourceFault, damaged
from reconciler.sourcing.settings import SourceBounds

log = logging.getLogger(__name__)

ALONE: Mapping[str, str] = MappingProxyType(
    {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_COUNT": "0",
        "GIT_ALLOW_PROTOCOL": "",  # it goes nowhere, whatever it finds
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
    }
)
"""Environment in which git knows nothing of this machine and reaches nothing beyond it."""
_TOLD = 300
_SETTINGS = {"pack.threads": "1", "core.hooksPath": "/dev/null", "gc.auto": "0", "maintenance.auto": "false"}


class Taking:
    """For one visit to one repository."""

    def __init__(self, repository: Repository, visit: VisitTime, bounds: SourceBounds) -> None:
        self._repository, self._visit, self._bounds = repository, visit, bounds

    def is_whole(self, commit: str) -> bool:
        """Whether a commit that is no branch's head is here with all that it has: one that the branch was at before, or
        one that merely came with another. Raises RepositoryUnreadable and VisitGivenUp."""
        return self._repository.has(commit) and self._walked(commit, {})

    def take(self, pack: IO[bytes], head: str) -> None:
        """Raises SourceFault, RepositoryUnreadable and VisitGivenUp."""
        with incoming(self._repository.git_dir) as aside:
            variables = aside.variables(())
            answer = self._git("index-pack", "--stdin", "--fix-thin", "--strict", given=pack, variables=variables)
            if answer.code != 0:
                log.info("git does not take what came for %s: %s", self._repository.path, ascii(answer.error[-_TOLD:]))
                raise damaged("a pack that git does not take whole")
            if not self._walked(head, variables):
                raise damaged("a pack that lacks objects of what it is for")
            aside.take()
        try:
            self._repository.commit(head)
        except RepositoryUnreadable:
            raise damaged("a branch that leads to no commit") from None

    def _walked(self, commit: str, variables: Mapping[str, str]) -> bool:
        arguments = ("rev-list", "--objects", "--quiet", commit, "--not", "--all")
        return self._git(*arguments, variables=variables).code == 0

    def _git(self, *arguments: str, variables: Mapping[str, str], given: IO[bytes] | None = None) -> GitAnswer:
        left = self._visit.left()
        try:
            return git(
                self._repository.git_dir,
                *arguments,
                given=given or b"",
                settings=_SETTINGS,
                variables={**variables, **ALONE, "GIT_ALLOC_LIMIT": str(self._bounds.largest)},
                patience=Patience(total=left),
                hurry=self._visit.over,
                share=Share(self._bounds.memory, int(self._bounds.visit) + 1),
            )
        except RepositoryUnreadable:
            self._visit.check()
            if self._visit.over():
                raise SourceFault(
                    "TooSlow", "what is new in the repository takes longer to check than it may"
                ) from None
            raise
