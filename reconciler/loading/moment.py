"""Commits as moments: an id and the time that conditions and creation timestamps take from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from apiserver.model import clock
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.objects import Repository

_KEPT = 1024


@dataclass(frozen=True, slots=True)
class Moment:
    """`time` is the committer time, seconds since 1970."""

    id: str
    time: int

    @property
    def rfc3339(self) -> str:
        return clock.rfc3339(self.time)


class Moments:
    """Looks commits up once. A commit that is gone (rewritten and pruned) counts as `fallback`."""

    def __init__(self, repo: Repository) -> None:
        self._repo = repo
        self._find = lru_cache(_KEPT)(self._read)

    def at(self, commit: str, fallback: int = 0) -> Moment:
        try:
            return self._find(commit)
        except RepositoryUnreadable:
            return Moment(commit, fallback)

    def _read(self, commit: str) -> Moment:
        return Moment(commit, self._repo.commit(commit).time)
