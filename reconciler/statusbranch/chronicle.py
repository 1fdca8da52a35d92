"""The status commits of a fleet, newest first, through the histories that were ended and gone on from.

Called by whoever looks for what was recorded of an earlier commit.
"""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.repository.chain import CONTINUES
from reconciler.repository.objects import CommitInfo, Repository


def status_commits(repo: Repository, head: str) -> Iterator[CommitInfo]:
    """Those that are there; the last parent of each is the commit that it is about. Nothing else is read: what they
    are about is anybody's. Raises RepositoryUnreadable."""
    current = head
    while repo.has(current):
        info = repo.commit(current)
        if not info.parents:
            return
        yield info
        ended = repo.trailers(current).get(CONTINUES, "") if CONTINUES in info.message else ""
        if not ended and len(info.parents) < 2:
            return
        current = ended or info.parents[0]
