"""Commits as moments: an id and the time that conditions and creation timestamps take from it."""

from __future__ import annotations

from dataclasses import dataclass

from apiserver.model import clock
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.objects import Repository


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
        self._found: dict[str, Moment] = {}

    def at(self, commit: str, fallback: int = 0) -> Moment:
        found = self._found.get(commit)
        if found is None:
            try:
                found = self._found[commit] = Moment(commit, self._repo.commit(commit).time)
            except RepositoryUnreadable:
                return Moment(commit, fallback)
        return found
