"""A clone of a fleet's repository with what a recovery would have and no more: the desired and the status branch, and
what a backup has that was not pushed.

Called by the drill. Objects are copied, never borrowed, and git checks that they are whole, so the source could be gone
by then. A path is cloned as a start does that finds its server gone (repository/rehost): a clone's tracked branches
count, too. Nothing is written to the source.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from reconciler.layout.fleet import STATUS_BRANCH, status_place
from reconciler.repository.access import NO_ACCESS, RemoteAccess
from reconciler.repository.errors import StatusAway
from reconciler.repository.mirror import Mirror
from reconciler.repository.objects import Repository
from reconciler.repository.rehost import rehost
from reconciler.repository.source import kind_of_source
from reconciler.saving.unpushed import UNPUSHED, TakingIn
from reconciler.statusbranch.chronicle import status_commits
from reconciler.statusbranch.clones import stood_in
from reconciler.statusbranch.lostrecord import LostRecord
from reconciler.statusbranch.naming import in_use, places, served_before, served_by
from reconciler.statusbranch.recorded import RecordedFleet

_COPY = "fleet.git"


class NothingRecorded(Exception):
    """There is nothing that a recovery could go on from. `hint`: what to do."""

    def __init__(self, text: str, hint: str) -> None:
        super().__init__(text)
        self.hint = hint


class Unpushed(NamedTuple):
    """What a backup has that was not pushed. `commit`: the newest status commit of it, "" where there is none.
    `counts`: whether a recovery goes on from that, because the source has nothing newer, and `more`: by how many
    commits. `why`: why none of it can be taken in."""

    commit: str = ""
    counts: bool = False
    more: int = 0
    why: str = ""


class FreshClone(NamedTuple):
    """`head`: of the desired branch. `status_branch`: its name, and where it is. `unpushed`: None without a backup, and
    where that has no such thing."""

    repo: Repository
    head: str
    status_branch: str
    recorded: RecordedFleet
    unpushed: Unpushed | None = None


@dataclass(frozen=True, slots=True)
class CloneAsked:
    """`source`: a URL, or the path of a repository; `folder`: of it, in which the fleet stands. `access`: with what a
    URL is reached."""

    source: str
    branch: str
    folder: str = ""
    access: RemoteAccess = NO_ACCESS


def clone(asked: CloneAsked, scratch: Path, unpushed: Path | None = None) -> FreshClone:
    """`unpushed`: what a backup has besides, a file. Raises NothingRecorded, Undecided and RepositoryError."""
    branch, mirror = asked.branch, _copied(asked, scratch)
    head = mirror.newest(branch)
    if head is None:
        there = ", ".join(mirror.branches()) or "none"
        raise NothingRecorded(f"{mirror.source_name} has no branch {branch}", f"give --branch; there are: {there}")
    taking = TakingIn(mirror, scratch / UNPUSHED)
    if unpushed is not None:
        shutil.copyfile(unpushed, scratch / UNPUSHED)
    taking.take()
    published = _published(mirror, head, branch)
    why = taking.take()  # again: it may go on from the status branch
    lost = mirror.lost_record()
    status = LostRecord(mirror).newest(published)
    if status is None:
        known = " or ".join(map(str, places(mirror.repository, head)))
        raise NothingRecorded(
            f"there is no status branch ({known}): a server that begins from this makes a new fleet, with new UIDs",
            "drill what the server pushes to; a clone needs `git fetch origin`, and a forge has to take the branch, or "
            "treeplane.yaml another repository for it (spec.status.repository)",
        )
    if not served_by(mirror.repository, status):
        raise NothingRecorded(
            f"{mirror.status_branch} ({status:.10}) is no status commit: its last parent is not the commit that its "
            "trailer Source-Commit names, or that is not there",
            "somebody else wrote it: have the branch point to the last commit of a server's",
        )
    stood_in(mirror.repository, status)
    recorded = RecordedFleet(mirror.repository, status)
    brought = _brought(mirror.repository, lost, published, status, why) if unpushed is not None else None
    return FreshClone(mirror.repository, head, str(mirror.status_place), recorded, brought)


def _published(mirror: Mirror, head: str, branch: str) -> str | None:
    """Where the status branch stands in the source. A repository that it has of its own may be away where a backup has
    the record."""
    known = served_before(mirror.repository)
    place = status_place(mirror.repository, known) if known else in_use(mirror.repository, head, branch, mirror)
    mirror.record_at(place)
    try:
        return mirror.refresh().status
    except StatusAway:
        if mirror.lost_record() is None:
            raise
        return None


def _brought(repo: Repository, lost: str | None, published: str | None, status: str, why: str) -> Unpushed:
    if lost is None:
        return Unpushed(why=why)
    counts = lost == status != published
    more = 0
    for info in status_commits(repo, lost) if counts else ():
        if info.id == published:
            break
        more += 1
    return Unpushed(lost, counts, more)


def _copied(asked: CloneAsked, scratch: Path) -> Mirror:
    """A mirror of the source, or of a copy of it."""
    source = asked.source
    if kind_of_source(source) != "url":
        rehost(Path(source).resolve(), scratch / _COPY, asked.branch)
        source = str(scratch / _COPY)
    return Mirror(scratch, source, asked.branch, STATUS_BRANCH, folder=asked.folder, access=asked.access)
