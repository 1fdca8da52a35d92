"""What a drill comes to: whether the same comes back, how long it takes, and what is not in the repository."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from apiserver.model.commits import CommitRef
from reconciler.drilling.freshclone import FreshClone, Unpushed
from reconciler.drilling.rehearsal import Rehearsal


class RecoveryPoint(NamedTuple):
    """Up to where a recovery comes. `recorded`: the status commit, and `recorded_at` its time, in seconds since 1970;
    `served`: the commit that it names; `head`: of the desired branch. `behind`: how many commits the head has that are
    not recorded; `late`: how many seconds after the served commit the head was made. `left`: the head does not contain
    what is recorded: the branch was rewritten. `arriving`: commits that were on their way into the store by then."""

    status_branch: str
    recorded: str
    recorded_at: int
    served: CommitRef
    served_at: int
    head: str
    head_at: int
    behind: int
    left: bool
    arriving: int

    @property
    def late(self) -> int:
        return max(0, self.head_at - self.served_at) if self.behind else 0


@dataclass(frozen=True, slots=True)
class Drill:
    """`source`: as messages name it. `cloning`: seconds. `holder`: who wrote the status branch last. `unpushed`: see
    FreshClone."""

    source: str
    point: RecoveryPoint
    cloning: float
    found: Rehearsal
    holder: str = ""
    unpushed: Unpushed | None = None

    @property
    def same(self) -> bool:
        """Whether a recovery gives what was recorded."""
        return not (self.found.differences or self.found.lost)

    @property
    def good(self) -> bool:
        """Whether it does, and nothing is known to say that somebody else recorded it."""
        return self.same and self.found.ours is not False


def point_of(clone: FreshClone) -> RecoveryPoint:
    """Raises RepositoryError."""
    repo, recorded = clone.repo, clone.recorded
    status, served, head = repo.commit(recorded.commit.id), repo.commit(recorded.source.id), repo.commit(clone.head)
    return RecoveryPoint(
        clone.status_branch,
        recorded.commit.id,
        status.time,
        recorded.source,
        served.time,
        clone.head,
        head.time,
        sum(1 for _ in repo.new_commits(clone.head, recorded.source.id)),
        not repo.is_ancestor(recorded.source.id, clone.head),
        len(recorded.facts().arriving),
    )
