"""The source where it is a repository on this machine: read where it is, and written to without running git.

Called by mirror. A plain clone counts as well: of a branch of its own and one that it tracks, the one that goes on from
the other.
"""

from __future__ import annotations

from reconciler.repository.chain import goes_on
from reconciler.repository.errors import BranchCheckedOut, DivergedStatus, PushRejected, RefMoved, RepositoryUnreadable
from reconciler.repository.keptopen import KeptOpen
from reconciler.repository.objects import Repository
from reconciler.repository.origin import is_shallow
from reconciler.repository.source import checked_out
from reconciler.repository.statusclone import StatusClone
from reconciler.repository.transfer import copy_commits
from reconciler.repository.write import move_ref

_HEADS, _TRACKED = "refs/heads/", "refs/remotes/origin/"


class Local:
    """One repository. `tracked`: whether branches count that it tracks; where others push, these may be anybody's."""

    goes_there = False
    """What is here of other repositories counts."""

    def __init__(self, path: str, *, tracked: bool = True) -> None:
        self._path = path
        self._kept = KeptOpen(path)
        self._prefixes = (_HEADS, _TRACKED) if tracked else (_HEADS,)

    def open(self) -> Repository:
        """Raises RepositoryUnreadable."""
        return self._kept.repository()

    def branches(self) -> list[str]:
        """Full names of all branches, own and tracked."""
        names, prefixes = self.open().references, self._prefixes
        return [_HEADS + name.removeprefix(prefix) for name in names for prefix in prefixes if name.startswith(prefix)]

    def refs(self, prefix: str) -> list[str]:
        """Full names of all refs below a prefix."""
        return [name for name in self.open().references if name.startswith(prefix)]

    def heads(self, branch: str, status_branch: str) -> tuple[str | None, str | None]:
        """Where a branch and the status branch stand, by one look. Raises as `desired` and `newest` do."""
        source = self.open()
        return self._desired(source, branch), self._newest(source, status_branch)

    def desired(self, branch: str) -> str | None:
        """Where a branch stands. Raises RepositoryUnreadable for a shallow clone: its history is not whole."""
        return self._desired(self.open(), branch)

    def _desired(self, source: Repository, branch: str) -> str | None:
        if is_shallow(source):
            raise RepositoryUnreadable(
                f"{self._path} is a shallow clone: its history is not whole", f"git -C {self._path} fetch --unshallow"
            )
        return source.ref(_HEADS + branch) or source.ref(_TRACKED + branch)

    def newest(self, branch: str) -> str | None:
        """Of a branch that the repository has and tracks, where the one stands that goes on from the other. Raises
        DivergedStatus where neither does."""
        return self._newest(self.open(), branch)

    def _newest(self, source: Repository, branch: str) -> str | None:
        own, tracked = (
            source.ref(prefix + branch) if prefix in self._prefixes else None for prefix in (_HEADS, _TRACKED)
        )
        if own is None or tracked is None:
            return own or tracked
        if goes_on(source, tracked, own):
            return own
        if goes_on(source, own, tracked):
            return tracked
        raise DivergedStatus(
            f"{self._path}: {branch} and origin/{branch} went different ways",
            f"decide which one counts, e.g. with: git branch -f {branch} origin/{branch}",
        )

    def elsewhere(self, repository: str) -> Local | StatusClone:
        """What is here of the branches of another repository that the status branch may be in; this one for ""."""
        if not repository:
            return self
        return StatusClone(self.open() if _TRACKED in self._prefixes else None, repository)

    def push(self, mirror: Repository, branch: str, commit: str, expected: str | None) -> None:
        """Makes `commit` of the mirror the branch's if that still is `expected` (None: does not exist)."""
        source, ref = self.open(), _HEADS + branch
        holder = checked_out(source.git_dir).get(ref)
        if holder is not None:
            raise BranchCheckedOut(
                f"{branch} is checked out in {holder}", "check out another branch there: git switch -"
            )
        current = source.ref(ref)
        behind = current is None or (expected is not None and goes_on(source, current, expected))
        if current != expected and not (behind and expected == source.ref(_TRACKED + branch)):
            raise PushRejected(f"{branch} is at {current}, not at {expected}", "read it again")
        copy_commits(mirror, source, commit)
        try:
            move_ref(source, ref, commit, current)
        except RefMoved as error:
            raise PushRejected(error.what, error.hint) from error

    def put(self, mirror: Repository, ref: str, commit: str) -> None:
        """Makes a ref of the source's point to a commit of the mirror's, whatever it was."""
        source = self.open()
        copy_commits(mirror, source, commit)
        source.require()
        source.references.create(ref, commit, force=True)
