"""How far behind the status branch is: what is recorded in the mirror, and not yet where it is read.

Called by the publisher for what a condition says, and by whoever measures. Nobody is asked: the branch is where it was
seen last, or put. The cost is that of the commits that wait, up to a bound.
"""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

from reconciler.repository.mirror import Mirror
from reconciler.statusbranch.chronicle import status_commits

_MOST = 1000


class StatusLag(NamedTuple):
    """`commits` that wait, at most 1000 of them counted; `since`: when the oldest of these was made, in seconds since
    1970 (0: none waits)."""

    commits: int = 0
    since: int = 0


def lag_of(mirror: Mirror) -> StatusLag:
    """Raises RepositoryError where a repository on this machine cannot be read."""
    head, seen = mirror.status(), mirror.status_seen()
    if head is None or head == seen:
        return StatusLag()
    commits, since = 0, 0
    for info in islice(status_commits(mirror.repository, head), _MOST):
        if info.id == seen:
            break
        commits, since = commits + 1, info.time
    return StatusLag(commits, since)
