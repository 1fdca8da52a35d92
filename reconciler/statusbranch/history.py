"""How long the status branch's history is, and which commits of the source it keeps reachable.

Called by the writer. History ends at an age: one commit then goes on from the last without being its child (see
repository/chain). A clone of the branch has to bring along every commit that recovery reads or takes a time from: those
that summaries name, also where the source's own branch went elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from apiserver.model import commits
from apiserver.model.commits import CommitRef
from reconciler.layout.errors import BadFile
from reconciler.layout.fleet import FleetConfig, read_fleet
from reconciler.plan import heldbefore
from reconciler.repository.chain import first
from reconciler.repository.difference import FileChange, walk
from reconciler.repository.errors import RepositoryError
from reconciler.repository.objects import Repository
from reconciler.statusbranch import format

_SUMMARY = f"/{format.SUMMARY}"
_NAMING = ("origin", "commit", "served", "held", "before", "at")
_KEPT = 1_024


def began(repo: Repository, commit: str, said: str) -> datetime:
    """When the history of a status commit began. `said`: what its fleet.yaml says, "" where an older version wrote."""
    if said:
        return datetime.fromisoformat(said)
    return datetime.fromtimestamp(repo.commit(first(repo, commit)).time, UTC)


def retention(repo: Repository, served: str) -> timedelta:
    """How old a history becomes, as the served commit's treeplane.yaml has it."""
    try:
        return read_fleet(repo, repo.commit(served).tree).retention
    except (BadFile, RepositoryError):
        return FleetConfig("").retention


def noting(repo: Repository, changes: Iterable[FileChange], into: set[str]) -> Iterator[FileChange]:
    """The same changes; once they are gone through, `into` has the commits that files name and did not name before."""
    known: dict[tuple[str, str], set[str]] = {}
    for change in changes:
        if _names(change.path) and change.new is not None:
            # What came with one commit says the same.
            told = change.new.id, change.old.id if change.old is not None else ""
            if told not in known:
                known = known if len(known) < _KEPT else {}
                known[told] = _named(repo, told[0]) - (_named(repo, told[1]) if told[1] else set())
                into |= known[told]
        yield change


def named(repo: Repository, tree: str) -> set[str]:
    """The commits that a status commit's tree names. Reads each distinct summary."""
    blobs = {entry.id for path, entry in walk(repo, tree) if _names(path)}
    return {commit for blob in blobs for commit in _named(repo, blob)}


def unreachable(repo: Repository, commits: Iterable[str], parents: Sequence[str]) -> list[str]:
    """Those of `commits` that are here and that no commit with these parents would bring along. Of two, one of which
    brings the other along, the first alone."""
    lacking = [c for c in sorted(commits) if repo.has(c) and not any(repo.is_ancestor(c, p) for p in parents)]
    return [c for c in lacking if not any(c != other and repo.is_ancestor(c, other) for other in lacking)]


def _named(repo: Repository, blob: str) -> set[str]:
    """Of a summary, or of fleet.yaml: those of the fleet's own repository."""
    found = format.load(repo.blob(blob))
    said = {*(found[key] for key in _NAMING if found.get(key)), *(found.get("kept") or {}).values()}
    said |= {*(found.get("arriving") or ()), *(found.get("verified") or ()), heldbefore.served(found)} - {""}
    return {commit.id for commit in _own(said)}


def _own(said: Iterable[str]) -> Iterator[CommitRef]:
    """What names no commit keeps nothing."""
    for text in said:
        with suppress(ValueError):
            commit = commits.parse(text)
            if not commit.repository:
                yield commit


def _names(path: str) -> bool:
    return path.endswith(_SUMMARY) or path == format.FLEET
