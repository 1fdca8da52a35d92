"""What is compared: the commits that `A..B`, `A...B` or nothing at all stand for, and what is recorded of the first.

Called by `treeplane diff`. All of it is found in a clone, without a server: what is served the status branch says. What
is in no branch yet (the files of a work tree, a merge that nobody made) becomes a commit of a repository beside it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from apiserver.model.commits import CommitRef, own
from reconciler.layout.errors import BadFile
from reconciler.layout.fleet import FILE, parse_fleet
from reconciler.layout.tree import ROOT
from reconciler.repository import borrowed
from reconciler.repository.folder import joined
from reconciler.repository.objects import Repository
from reconciler.review.revisions import BadRange, recorded_of, require_whole, resolve
from reconciler.statusbranch.recorded import RecordedFleet

_WORK_TREE = "the work tree"
_HEAD = "HEAD"


class End(NamedTuple):
    """`commit`: of the scratch repository; `name`: what it was asked for by."""

    commit: CommitRef
    name: str

    def __str__(self) -> str:
        return f"{self.commit:.10}" if self.commit.id.startswith(self.name) else f"{self.name} ({self.commit:.10})"


@dataclass(frozen=True, slots=True)
class Ends:
    """`target` is `base` with what is proposed. `repo` has both. `recorded`: what the status branch says of `base`, or
    of what comes before it; None where it says nothing. `notes`: what whoever reads this should know.
    `tip`: the newest commit that is proposed, without what is in no branch; `status`: the newest status commit that the
    clone has, "" where it has none."""

    repo: Repository
    base: End
    target: End
    recorded: RecordedFleet | None
    notes: tuple[str, ...] = ()
    tip: str = ""
    status: str = ""


class CommitRange(NamedTuple):
    """A range as it was typed. "" as `one`: what is served; as `other`: the work tree. `merges`: as `A...B`."""

    one: str
    other: str
    merges: bool

    @staticmethod
    def parse(text: str) -> CommitRange:
        for dots in ("...", ".."):
            one, found, other = text.partition(dots)
            if found:
                return CommitRange(one or _HEAD, other or _HEAD, dots == "...")
        return CommitRange(text, "", merges=not text)


def find(clone: Repository, top: Path | None, asked: CommitRange, scratch: Path) -> Ends:
    """`top`: of the clone's work tree, None where it has none. Raises BadRange and RepositoryUnreadable."""
    require_whole(clone, "what a change does")
    repo = borrowed.borrow(clone, scratch)
    target = _target(clone, repo, top, asked.other)
    # Which branch is the status branch the first commit says: the second is whoever's who proposes it.
    recorded = recorded_of(clone, resolve(clone, asked.one or _HEAD))
    status = recorded.commit.id if recorded is not None else ""
    base, notes = _base(clone, asked.one, recorded)
    if asked.merges:
        target, more = _merged(repo, base, target)
        notes = (*notes, *more)
        if more:
            base = End(own(repo.merge_base(base.commit.id, target.commit.id) or base.commit.id), "the merge base")
    if recorded is not None and not repo.is_ancestor(recorded.source.id, base.commit.id):
        recorded = None
        notes = (*notes, f"nothing is recorded of {base}, so what stands on clusters is not known")
    elif recorded is None:
        notes = (*notes, "there is no status branch here, so what is served and what stands on clusters is not known")
    reads = RecordedFleet(repo, recorded.commit.id) if recorded else None
    return Ends(repo, base, target, reads, notes, resolve(clone, asked.other or _HEAD), status)


def proposed(clone: Repository, scratch: Path, make: Callable[[Repository, str, RecordedFleet | None], str]) -> Ends:
    """What a commit does that nobody has made yet, on top of HEAD. `make`: writes it into a repository beside the
    clone, on top of a commit, with what is recorded of the fleet. Raises BadRange and RepositoryUnreadable."""
    require_whole(clone, "what a change does")
    head = resolve(clone, _HEAD)
    recorded, repo = recorded_of(clone, head), borrowed.borrow(clone, scratch)
    reads = RecordedFleet(repo, recorded.commit.id) if recorded is not None else None
    target = make(repo, head, reads)
    if reads is not None and not repo.is_ancestor(reads.source.id, head):
        reads = None
    status = recorded.commit.id if recorded is not None else ""
    return Ends(repo, End(own(head), _HEAD), End(own(target), "the commit"), reads, (), target, status)


def _target(clone: Repository, repo: Repository, top: Path | None, revision: str) -> End:
    if revision:
        return End(own(resolve(clone, revision)), revision)
    if top is None:
        raise BadRange("there is no work tree here", "name what to compare, like main..other")
    folder = clone.folders[0]
    parts = joined(folder, ROOT), joined(folder, FILE), *_shared(top, folder)
    commit = borrowed.work_tree(clone, repo, top, parts, int(time.time()))
    return End(own(commit), _WORK_TREE)


def _shared(top: Path, folder: str) -> Iterator[str]:
    """What workspaces are rendered of that stands elsewhere."""
    with suppress(OSError, BadFile):
        file = joined(folder, FILE)
        yield from parse_fleet((top / file).read_bytes(), file).shared


def _base(clone: Repository, revision: str, recorded: RecordedFleet | None) -> tuple[End, tuple[str, ...]]:
    if revision:
        return End(own(resolve(clone, revision)), revision), ()
    if recorded is not None:
        return End(recorded.source, f"what is served of {recorded.facts().branch or 'the fleet'}"), ()
    for ref in ("refs/remotes/origin/HEAD", "refs/remotes/origin/main", "refs/heads/main"):
        found = clone.ref(ref)
        if found is not None:
            name = ref.removeprefix("refs/remotes/").removeprefix("refs/heads/")
            return End(own(found), name), ()
    return End(own(resolve(clone, _HEAD)), _HEAD), ()


def _merged(repo: Repository, base: End, target: End) -> tuple[End, tuple[str, ...]]:
    """What merging makes of both; and what to say where that cannot be told."""
    made = borrowed.merged(repo, base.commit.id, target.commit.id, repo.commit(target.commit.id).time)
    if made is not None:
        return (target if made == target.commit.id else End(own(made), target.name)), ()
    why = "conflicts with it" if borrowed.merges() else "cannot be merged here (git is older than 2.38)"
    return target, (f"{target} {why}: it is compared with the last commit that it and {base} have in common",)
