"""One visit to one source: where its branch stands, and what is new of it, fetched and found whole.

Called by follower.py from a thread of its own, never twice at a time for one source. Nothing of a visit that fails
counts: the refs move at the end, and what came until then goes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from reconciler.repository import packing
from reconciler.repository.errors import RepositoryError
from reconciler.repository.objects import Repository
from reconciler.sourcing.connection import SourceConnection, VisitTime
from reconciler.sourcing.disk import SourceDisk
from reconciler.sourcing.faults import NotGiven, SourceFault, VisitGivenUp
from reconciler.sourcing.fetching import Fetching
from reconciler.sourcing.followed import FollowedSource
from reconciler.sourcing.kept import SourceRefs
from reconciler.sourcing.settings import FollowSettings
from reconciler.sourcing.taking import Taking
from reconciler.sourcing.uploadpack import UploadPack

log = logging.getLogger(__name__)


class Visited(NamedTuple):
    """`head`: of the branch, whole and here. `left`: commits that it does not contain and that were heads until now.
    `second`: whether the server speaks git's protocol in its version 2. `refused`: commits that are to stay, are not
    here, and that it did not give."""

    head: str
    left: frozenset[str]
    second: bool
    refused: frozenset[str]


@dataclass(frozen=True, slots=True)
class Visit:
    """`keep`: ids of commits that stay. `refused`, `second`: see Visited, as far as it is known."""

    name: str
    source: FollowedSource
    keep: Collection[str]
    refused: Collection[str]
    second: bool
    time: VisitTime

    def make(self, disk: SourceDisk, settings: FollowSettings) -> Visited:
        """Raises SourceFault, VisitGivenUp, RepositoryError and OSError."""
        bounds, branch = settings.bounds, self.source.address.branch
        with SourceConnection(self.source, self.time, bounds) as connection:
            remote = UploadPack(connection, branch, bounds, self.second)
            head = remote.head()
            if head is None:
                hint = "push it, or name another; what is served stays"
                raise SourceFault("BranchNotFound", f"the repository has no branch {branch}", hint)
            repository = disk.store.make(self.name)
            refs = SourceRefs(repository)
            taking = Taking(repository, self.time, bounds)
            fetching = Fetching(self.name, remote, refs, taking, disk, self.time)
            self._keep(refs, taking)
            left = frozenset[str]()
            if refs.head(branch) != head:
                refs.mend()
                fetching.bring(head)
                left = frozenset(refs.move(branch, head))
            # From here on it is known where the branch stands, and nothing may keep that from being told.
            self._tidy(repository, disk, settings)
            return Visited(head, left, remote.second, frozenset(self._refused(fetching)))

    def _tidy(self, repository: Repository, disk: SourceDisk, settings: FollowSettings) -> None:
        try:
            if packing.load(repository.git_dir).packs > settings.packs:
                packing.pack(repository.git_dir)
                repository.let_go()
                disk.changed(self.name)
        except (RepositoryError, OSError) as error:
            log.warning("%s was not packed: %s", repository.path, error)

    def _refused(self, fetching: Fetching) -> Iterator[str]:
        """Of the commits that are missing those that were asked for and not given: no fault of the source's. Where the
        remote failed meanwhile they are asked for again with the next visit."""
        try:
            for commit in self._missing(fetching.refs):
                try:
                    fetching.bring(commit)
                    fetching.refs.keep({commit})
                except (RepositoryError, OSError) as error:
                    log.info("%s does not give %s: %s", self.source.address.url, commit, error)
                    if not _passes(error):
                        yield commit
        except VisitGivenUp:
            return

    def _missing(self, refs: SourceRefs) -> list[str]:
        """Commits that are served and no ref leads to, after this machine lost its disk while the branch was rewritten:
        many servers give them by their ids all the same."""
        kept = refs.kept()
        return sorted(each for each in self.keep if each not in kept and each not in self.refused)

    def _keep(self, refs: SourceRefs, taking: Taking) -> None:
        there = refs.kept()
        refs.let_go(there - set(self.keep))
        refs.keep([each for each in self.keep if each not in there and taking.is_whole(each)])


def _passes(error: Exception) -> bool:
    """Whether another time it may go well, for little."""
    if not isinstance(error, SourceFault) or isinstance(error, NotGiven):
        return False
    return error.reason in ("Failing", "Unreachable")


def within(seconds: float) -> VisitTime:
    return VisitTime(time.monotonic() + seconds)
