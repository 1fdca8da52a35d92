"""Which status commit tells what was served of a commit, or of the last one before it that was recorded.

Called by viewer, which keeps one of these: the status branch is walked once, and then as far as it is new.
"""

from __future__ import annotations

from itertools import islice

from reconciler.repository.mirror import STATUS_REF
from reconciler.repository.objects import Repository
from reconciler.statusbranch.chronicle import status_commits
from reconciler.statusbranch.recorded import RecordedFleet

_FAR = 20_000
"""Commits before one that are looked through for one that was recorded."""
_SETTLED = 50
"""Status commits that are looked through for one that was not made in the middle of a load."""


class Recordings:
    """Of one fleet."""

    def __init__(self) -> None:
        self._head = ""
        self.folders: tuple[str, ...] = ()
        """Of the fleet, see Repository; () while nothing is recorded."""
        self._newest: dict[bytes, bytes] = {}
        """By the commit that was served, the newest status commit that names it."""

    def refresh(self, mirror: Repository) -> None:
        """Reads what is new on the status branch."""
        head = mirror.ref(STATUS_REF)
        if head is None or head == self._head:
            return
        fresh: dict[bytes, bytes] = {}
        for info in status_commits(mirror, head):
            if info.id == self._head:
                break
            fresh.setdefault(bytes.fromhex(info.parents[-1]), bytes.fromhex(info.id))
        self._newest |= fresh
        self._head, self.folders = head, RecordedFleet(mirror, head).facts().folders

    def of(self, repo: Repository, commit: str) -> str:
        """The status commit to begin from for a commit; "" where there is none. Raises RepositoryUnreadable."""
        found = self._newest.get(bytes.fromhex(commit))
        if found is None:
            before = (self._newest.get(bytes.fromhex(each)) for each in islice(repo.before(commit), _FAR))
            found = next((each for each in before if each is not None), None)
        return _settled(repo, found.hex(), commit) if found is not None else ""


def _settled(repo: Repository, status: str, commit: str) -> str:
    """It, or the last one before it that was not made in the middle of a load: in that, some workspaces are past the
    commit that is named."""
    for info in islice(status_commits(repo, status), _SETTLED):
        if not RecordedFleet(repo, info.id).facts().arriving and repo.is_ancestor(info.parents[-1], commit):
            return info.id
    return status
