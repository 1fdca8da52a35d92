"""The history of a fleet in a clone: the commits of the branch that is served, and what each of them declares.

Opened by the commands; asked by log, blame and trace. First parents alone: what was merged came with the merge.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from reconciler.layout.grouping import Grouping
from reconciler.layout.tree import WorkspaceTree
from reconciler.loading.sources import Sources
from reconciler.rendering.rendering import NOWHERE, Renders
from reconciler.repository.objects import CommitInfo, Repository
from reconciler.review.revisions import BadRange, recorded_of, require_whole, resolve
from reconciler.statusbranch.recorded import RecordedFleet

_HEAD = "HEAD"
_ORIGIN, _OWN = "refs/remotes/origin/", "refs/heads/"


@dataclass(frozen=True, slots=True)
class FleetHistory:
    """`head`: the newest commit that counts; `name`: what it was asked for by; `without`: what this commit contains
    does not count, "" where all does. `recorded`: the newest status commit, None where the clone has none."""

    repo: Repository
    head: str
    name: str
    without: str = ""
    recorded: RecordedFleet | None = None
    sources: Sources = field(default_factory=Sources)
    _grouping: list[Grouping] = field(default_factory=list)

    def tree(self, tree_id: str) -> WorkspaceTree:
        """By what it says itself: nobody claims a directory in it."""
        if not self._grouping:
            self._grouping.append(Grouping(self.repo))
        return WorkspaceTree(self.repo, tree_id, grouping=self._grouping[0])

    def chain(self, begin: str = "") -> Iterator[CommitInfo]:
        """First parents, the newest first. `begin`: another commit than the head, from which on all counts."""
        counts = None if begin or not self.without else {c.id for c in self.repo.new_commits(self.head, self.without)}
        current: str | None = begin or self.head
        while current is not None and (counts is None or current in counts):
            info = self.repo.commit(current)
            yield info
            current = next(iter(info.parents), None)

    def steps(self, begin: str = "") -> Iterator[tuple[CommitInfo, CommitInfo | None]]:
        """Each commit with the one before it, None of the first of all."""
        for commit in self.chain(begin):
            above = next(iter(commit.parents), None)
            yield commit, self.repo.commit(above) if above is not None else None


def open_history(clone: Repository, asked: str, what: str, renders: Renders = NOWHERE) -> FleetHistory:
    """`asked`: a revision, `A..B`, or "" for what is served. `what`: could not be told of a clone that lacks commits.
    `renders`: for directories that are rendered. Raises BadRange and RepositoryError."""
    require_whole(clone, what)
    one, dots, other = asked.partition("..")
    if other.startswith("."):
        raise BadRange(f"{asked} is what a merge brings, and no history", f"give {one or _HEAD}..{other.lstrip('.')}")
    recorded = recorded_of(clone, _any_head(clone))
    name = (other or _HEAD) if dots else asked
    if not name:
        name, head = _served(clone, recorded)
    else:
        head = resolve(clone, name)
    without = resolve(clone, one or _HEAD) if dots else ""
    return FleetHistory(clone, head, name, without, recorded, Sources(renders))


def _served(clone: Repository, recorded: RecordedFleet | None) -> tuple[str, str]:
    """The branch that is served, as the clone knows it, and its head."""
    branch = recorded.facts().branch if recorded is not None else ""
    named = [f"{_ORIGIN}{branch}", f"{_OWN}{branch}"] if branch else []
    for ref in (*named, f"{_ORIGIN}HEAD", f"{_ORIGIN}main", f"{_OWN}main"):
        found = clone.ref(ref)
        if found is not None:
            return ref.removeprefix("refs/remotes/").removeprefix(_OWN), found
    return _HEAD, resolve(clone, _HEAD)


def _any_head(clone: Repository) -> str:
    """A commit of the fleet: a clone may have none checked out."""
    found = clone.resolve(_HEAD) or clone.resolve("origin/HEAD") or clone.resolve("origin/main")
    if found is None:
        raise BadRange("there is no commit here", "fetch, or go to a clone of the fleet's repository")
    return found
