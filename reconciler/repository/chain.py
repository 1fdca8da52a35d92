"""The history of a branch that is ended now and then: one commit goes on from another without being its child.

The trailer `Continues` of a commit names the one that it goes on from, which may be gone from a clone by then. Called
by mirror, and by whoever asks whether one status commit holds what another held.
"""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.repository.objects import Repository

CONTINUES = "Continues"


def goes_on(repo: Repository, older: str, newer: str) -> bool:
    """Whether `newer` is `older`, or descends or goes on from it."""
    if repo.is_ancestor(older, newer):
        return True
    return any(ended == older or repo.is_ancestor(older, ended) for ended in endings(repo, newer))


def endings(repo: Repository, commit: str) -> Iterator[str]:
    """The commits from which the history of `commit` went on, the newest first, as far as they are here."""
    current: str | None = commit
    while current is not None and repo.has(current):
        began = first(repo, current)
        current = repo.trailers(began).get(CONTINUES)
        if current is not None:
            yield current


def brought(repo: Repository, before: str | None, until: str, most: int) -> tuple[list[str], int]:
    """The commits by which a branch came from `before` to `until`, first parents alone, oldest first: the newest
    `most`, and how many there are besides. Of a branch that was begun (`before` None) or rewritten, and of one that was
    merged the other way round, the newest that `before` does not contain, and none are counted. Raises
    RepositoryUnreadable."""
    known = before if before is not None and repo.has(before) else None
    chain = repo.first_parents(known, until) if known is not None else None
    if chain is not None:
        return chain[-most:], max(0, len(chain) - most)
    newest: list[str] = []
    current: str | None = until
    while current is not None and len(newest) < most and (known is None or not repo.is_ancestor(current, known)):
        newest.append(current)
        current = next(iter(repo.commit(current).parents), None)
    return newest[::-1], 0


def first(repo: Repository, commit: str) -> str:
    """The commit with which the history of `commit` begins. Every one after it has the one before as first parent, and
    what it is about as others; what it is about may say anything, and is not asked."""
    while True:
        parents = repo.commit(commit).parents
        if len(parents) < 2 or CONTINUES in repo.trailers(commit):
            return commit
        commit = parents[0]
