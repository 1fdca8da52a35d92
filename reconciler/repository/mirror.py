"""The mirror: a bare repository in the data directory that sees everything of the source and may be lost at any time.

Called by the loader (what is desired), the status writer (what was published) and the command line. Of a source on this
machine the mirror borrows the objects (git's alternates) and reads the refs where they are; for a URL see remote.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pygit2

from reconciler.repository import locks, remote
from reconciler.repository.errors import (
    BranchCheckedOut,
    DivergedStatus,
    PushRejected,
    RefMoved,
    RepositoryUnreadable,
    redact,
)
from reconciler.repository.keep import keep
from reconciler.repository.objects import Repository
from reconciler.repository.remote import Remote, RemoteSettings
from reconciler.repository.source import checked_out, kind_of_source
from reconciler.repository.transfer import copy_commits
from reconciler.repository.write import move_ref

STATUS_REF = "refs/treeplane/status"
"""The newest status commit that this server wrote, pushed or not."""
SERVED_REF = "refs/treeplane/served"
"""Keeps the objects of the served commit."""
_TRACKED = "refs/remotes/origin/"


class Heads(NamedTuple):
    """Where the source's branches stand; None where there is no such branch."""

    desired: str | None
    status: str | None


class Mirror:
    """`repository` reads every object of source and mirror, and is where new status commits are written."""

    def __init__(
        self,
        data_dir: Path,
        source: str,
        branch: str,
        status_branch: str,
        settings: RemoteSettings = remote.DEFAULT,
    ) -> None:
        """Opens or creates `<data_dir>/mirror`. Raises RepositoryUnreadable when the source is not there."""
        self.source = source
        self.branch = branch
        self.status_branch = status_branch
        self.path = data_dir / "mirror"
        self.is_remote = kind_of_source(source) == "url"
        borrowed = "" if self.is_remote else f"{self._local().git_dir.resolve() / 'objects'}\n"
        if borrowed.count("\n") > 1:
            raise RepositoryUnreadable(f"{source!r} has a line break in its path", "move it")
        if not self.path.exists():
            self.path.mkdir(parents=True, mode=0o700)
            pygit2.init_repository(str(self.path), bare=True)
        alternates = self.path / "objects" / "info" / "alternates"
        if borrowed:
            alternates.parent.mkdir(parents=True, exist_ok=True)
            alternates.write_text(borrowed)
        else:
            alternates.unlink(missing_ok=True)
        self.repository = Repository(self.path)
        self._remote = Remote(self.repository, source, settings) if self.is_remote else None

    @property
    def source_name(self) -> str:
        """The source as messages show it."""
        return redact(self.source)

    def close(self, seconds: float) -> None:
        """Nobody waits longer than that for a URL any more."""
        if self._remote is not None:
            self._remote.close(seconds)

    def clear_locks(self) -> None:
        """What a former self that was killed left locked. Only for the one process that writes."""
        locks.clear(self.repository.git_dir)
        if not self.is_remote:
            locks.clear_own(self._local(), [f"refs/heads/{self.branch}", f"refs/heads/{self.status_branch}"])

    def refresh(self) -> Heads:
        """Looks at the source anew, and fetches what is new there. Raises RepositoryUnreadable and DivergedStatus."""
        if self._remote is None:
            return self._refresh_local()
        return self._present(Heads(*self._remote.look([self.branch, self.status_branch])))

    def last_seen(self) -> Heads:
        """The heads of a URL as the last `refresh` that went well, or a push of ours since, left them."""
        if self._remote is None:
            return Heads(None, None)
        return Heads(*(self._whole(self._remote.tracked(b)) for b in (self.branch, self.status_branch)))

    def branches(self) -> list[str]:
        """The source's branches, for a message that names what could have been meant."""
        names = self._remote.branches() if self._remote is not None else list(self._local().git.references)
        prefix = "refs/heads/"
        return sorted(name.removeprefix(prefix) for name in names if name.startswith(prefix))

    def has_branch(self, name: str) -> bool:
        """Whether the source has a branch of that name, its own or one that it tracks. Raises RepositoryUnreadable."""
        if self._remote is not None:
            return f"refs/heads/{name}" in self._remote.branches()
        return any(self._local().ref(f"{prefix}{name}") is not None for prefix in ("refs/heads/", _TRACKED))

    def push_status(self, commit: str, expected: str | None) -> None:
        """Makes `commit` the source's status branch if that still is `expected` (None: does not exist).

        Raises PushRejected when it is elsewhere or the source refuses, BranchCheckedOut when a work tree of the source
        has the branch checked out, RepositoryUnreadable when the source is away.
        """
        if expected is not None and not self.repository.is_ancestor(expected, commit):
            raise PushRejected(
                f"the status commit {commit} does not descend from {expected}", "read the status branch again"
            )
        if self._remote is not None:
            self._remote.push(self.status_branch, commit, expected)
        else:
            self._push_local(commit, expected)

    def push_desired(self, commit: str, expected: str) -> None:
        """Makes `commit` the desired branch of a URL if that still is `expected`. Raises as `push_status` does."""
        assert self._remote is not None, "a branch on this machine is moved, not pushed to"
        self._remote.push(self.branch, commit, expected)

    def status(self) -> str | None:
        """The status commit kept here, None when there is none or its objects are gone."""
        return self._kept(STATUS_REF)

    def served(self) -> str | None:
        return self._kept(SERVED_REF)

    def keep_status(self, commit: str) -> None:
        """Takes over a status that was read from the source."""
        self.repository.git.references.create(STATUS_REF, commit, force=True)

    def keep_served(self, commit: str) -> None:
        """Keeps the objects of the served commit from being collected."""
        self.repository.git.references.create(SERVED_REF, commit, force=True)

    def keep(self, old: str, new: str) -> str | None:
        """Keeps what the commit `old` has and the branch's head `new` lacks, for 90 days; the ref (see keep)."""
        return keep(self.repository, old, new, datetime.now(UTC).date())

    def _kept(self, ref: str) -> str | None:
        return self._whole(self.repository.ref(ref))

    def _whole(self, commit: str | None) -> str | None:
        if commit is None or not self.repository.has(commit):
            return None
        return commit if self.repository.has(self.repository.commit(commit).tree) else None

    # --- a source on this machine

    def _local(self) -> Repository:
        return Repository(self.source)

    def _refresh_local(self) -> Heads:
        source = self._local()
        shallow = source.git_dir / "shallow"
        if shallow.is_file() and shallow.stat().st_size:
            raise RepositoryUnreadable(
                f"{self.source} is a shallow clone: its history is not whole", "run: git fetch --unshallow"
            )
        desired = source.ref(f"refs/heads/{self.branch}") or source.ref(f"{_TRACKED}{self.branch}")
        return self._present(Heads(desired, self._newer(source)))

    def _newer(self, source: Repository) -> str | None:
        own = source.ref(f"refs/heads/{self.status_branch}")
        tracked = source.ref(f"{_TRACKED}{self.status_branch}")
        if own is None or tracked is None:
            return own or tracked
        if source.is_ancestor(tracked, own):
            return own
        if source.is_ancestor(own, tracked):
            return tracked
        raise DivergedStatus(
            f"{self.source}: {self.status_branch} and origin/{self.status_branch} went different ways",
            f"decide which one counts, e.g. with: git branch -f {self.status_branch} origin/{self.status_branch}",
        )

    def _push_local(self, commit: str, expected: str | None) -> None:
        source = self._local()
        ref = f"refs/heads/{self.status_branch}"
        holder = checked_out(source.git_dir).get(ref)
        if holder is not None:
            raise BranchCheckedOut(
                f"{self.status_branch} is checked out in {holder}", "check out another branch there: git switch -"
            )
        current = source.ref(ref)
        behind = current is None or (expected is not None and source.is_ancestor(current, expected))
        if current != expected and not (behind and expected == source.ref(f"{_TRACKED}{self.status_branch}")):
            raise PushRejected(f"{self.status_branch} is at {current}, not at {expected}", "read it again")
        copy_commits(self.repository, source, commit)
        try:
            move_ref(source, ref, commit, current)
        except RefMoved as error:
            raise PushRejected(error.what, error.hint) from error

    def _present(self, heads: Heads) -> Heads:
        for commit in heads:
            if commit is not None:
                self.repository.commit(commit)
        return heads
