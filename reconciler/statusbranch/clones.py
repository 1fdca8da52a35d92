"""What a clone says was served: the newest commit of the fleet's status branch that it has.

Called by commands that work in a clone, or in a repository that others push to, without a server.
"""

from __future__ import annotations

from reconciler.repository.local import Local
from reconciler.repository.objects import Repository
from reconciler.repository.statusclone import fetching
from reconciler.statusbranch.naming import Undecided, in_use
from reconciler.statusbranch.recorded import RecordedFleet


def recorded_for(repo: Repository, commit: str, *, tracked: bool = True) -> RecordedFleet | None:
    """Of the fleet that a commit is of; None where the clone has no status branch of it. `tracked`: whether what the
    clone tracks counts, too: where others push, only branches are protected. Raises Undecided."""
    there = Local(str(repo.path), tracked=tracked)
    place = in_use(repo, commit, "", there)
    if place.repository:
        newest = there.elsewhere(place.repository).newest(place.branch)
    else:
        where = ("remotes/origin", "heads") if tracked else ("heads",)
        refs = [repo.ref(f"refs/{each}/{place.branch}") for each in where]
        heads = [ref for ref in refs if ref is not None]
        newest = next((h for h in heads if all(repo.is_ancestor(other, h) for other in heads)), next(iter(heads), None))
    stood_in(repo, newest)
    return RecordedFleet(repo, newest) if newest is not None else None


def stood_in(repo: Repository, status: str | None) -> None:
    """From here on the fleet is found in commits from before it moved to another folder, too. `status`: what tells."""
    if status is not None and repo.has(status):
        repo.stood_in(RecordedFleet(repo, status).facts().folders)


def fetching_for(repo: Repository, commit: str | None) -> str:
    """The command that has a clone fetch the status branch of the fleet that a commit is of."""
    try:
        return fetching(in_use(repo, commit, "", Local(str(repo.path)))) if commit is not None else "git fetch origin"
    except Undecided:
        return "git fetch origin"
