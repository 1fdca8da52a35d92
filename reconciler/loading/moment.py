"""Commits as moments: which one, and the time that conditions and creation timestamps take from it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Protocol

from apiserver.model import clock
from apiserver.model.commits import CommitRef
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.repositories import Repositories

_KEPT = 1024


@dataclass(frozen=True, slots=True)
class Moment:
    """`time` is the committer time, seconds since 1970; of a `look` at what is served already, which no commit causes,
    the real one. Such looks have numbers of their own."""

    commit: CommitRef
    time: int
    look: int = 0

    @staticmethod
    def now(commit: CommitRef) -> Moment:
        """Of a look at that commit."""
        number = time.time_ns()
        return Moment(commit, number // 1_000_000_000, number)

    @property
    def rfc3339(self) -> str:
        return clock.rfc3339(self.time)

    @property
    def step(self) -> str:
        """What is judged at this moment, in words that say no other."""
        return f"{self.commit} {self.look}" if self.look else str(self.commit)


class FindMoment(Protocol):
    """Moments, or what stands for them."""

    def at(self, commit: CommitRef, fallback: int = 0, /) -> Moment: ...


class OneMoment(NamedTuple):
    """As Moments, where nothing comes of a commit."""

    moment: Moment

    def at(self, _: CommitRef, _fallback: int = 0, /) -> Moment:
        return self.moment


class Moments:
    """Looks commits up once. A commit that is gone (rewritten and pruned) counts as `fallback`."""

    def __init__(self, repositories: Repositories) -> None:
        self._repositories = repositories
        self._find = lru_cache(_KEPT)(self._read)

    def at(self, commit: CommitRef, fallback: int = 0) -> Moment:
        try:
            return self._find(commit)
        except RepositoryUnreadable:
            return Moment(commit, fallback)

    def _read(self, commit: CommitRef) -> Moment:
        return Moment(commit, self._repositories.of(commit).commit(commit.id).time)
