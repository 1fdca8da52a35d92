"""What commits say in trailers, as git reads them. Called by loading, for what a pusher allows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from reconciler.repository.command import git
from reconciler.repository.objects import Repository


def said(
    repo: Repository, head: str, without: str, name: str, most: int | None = None, saying: int | None = None
) -> set[str]:
    """The values of a trailer in the commits that `head` contains and `without` does not, merged ones too. One trailer
    may hold several values, with blanks or commas between them. `most`: so many commits are looked at, the newest, and
    of those that seem to say it `saying` (each is a call of git); None: all."""
    wanted, found = name.lower(), set[str]()
    new = islice(repo.new_commits(head, without), most)
    for commit in islice((commit for commit in new if wanted in commit.message.lower()), saying):
        found.update(value for key, value in _trailers(repo, commit.message) if key == wanted)
    return found


def said_by(repo: Repository, commit: str, name: str) -> set[str]:
    """The same of one commit alone."""
    message = repo.commit(commit).message
    return {v for k, v in _trailers(repo, message) if k == name.lower()} if name.lower() in message.lower() else set()


def _trailers(repo: Repository, message: str) -> Iterator[tuple[str, str]]:
    answer = git(repo.git_dir, "interpret-trailers", "--parse", given=message.encode())
    for line in answer.output.splitlines():
        name, _, text = line.partition(":")
        for value in text.replace(",", " ").split():
            yield name.strip().lower(), value
