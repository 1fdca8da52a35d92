"""Commits and their times, looked up once."""

from __future__ import annotations

from collections import Counter

from apiserver.model.commits import own
from reconciler.loading.moment import Moments
from reconciler.repository.objects import CommitInfo, Repository
from reconciler.repository.repositories import Repositories


class Asked(Repository):
    """Has every commit, and notes which were asked for."""

    def __init__(self) -> None:
        self.times: Counter[str] = Counter()

    def commit(self, commit_id: str) -> CommitInfo:
        self.times[commit_id] += 1
        return CommitInfo(commit_id, (), "", 7, "", "")


def test_commits_that_were_looked_up_are_forgotten_in_time() -> None:
    asked = Asked()
    moments = Moments(Repositories(asked))
    for number in range(5000):
        assert moments.at(own(f"{number:040x}")).time == 7
    for number in (4999, 0):
        moments.at(own(f"{number:040x}"))
    assert (asked.times[f"{4999:040x}"], asked.times[f"{0:040x}"]) == (1, 2)
