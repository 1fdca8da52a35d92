"""The mirror: a bare repository in the data directory that sees everything of the source and may be lost at any time.

Called by the loader (what is desired), the status writer (what was published) and the command line. Of a source on this
machine the mirror borrows the objects (git's alternates) and reads the refs where they are; a URL is fetched and pushed
by the git command line, so that credentials, proxies and host keys are the user's.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pygit2

from reconciler.repository import locks
from reconciler.repository.command import Answer, git
from reconciler.repository.errors import (
    BranchCheckedOut,
    DivergedStatus,
    PushRejected,
    RefMoved,
    RepositoryUnreadable,
    redact,
)
from reconciler.repository.objects import Repository
from reconciler.repository.source import checked_out, kind_of_source
from reconciler.repository.transfer import copy_commits
from reconciler.repository.write import move_ref

STATUS_REF = "refs/treeplane/status"
"""The newest status commit that this server wrote, pushed or not."""
SERVED_REF = "refs/treeplane/served"
"""Keeps the objects of the served commit."""
_TRACKED = "refs/remotes/origin/"
_ANSWER_SECONDS, _FETCH_SECONDS = 60.0, 3600.0
_AWAY = "check the URL, the network and your credentials; it is tried again"


class Heads(NamedTuple):
    """Where the source's branches stand; None where there is no such branch."""

    desired: str | None
    status: str | None


class Mirror:
    """`repository` reads every object of source and mirror, and is where new status commits are written."""

    def __init__(self, data_dir: Path, source: str, branch: str, status_branch: str) -> None:
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

    def clear_locks(self) -> None:
        """What a former self that was killed left locked. Only for the one process that writes."""
        locks.clear(self.repository.git_dir)
        if not self.is_remote:
            locks.clear_own(self._local(), [f"refs/heads/{self.branch}", f"refs/heads/{self.status_branch}"])

    def refresh(self) -> Heads:
        """Looks at the source anew, and fetches what is new there. Raises RepositoryUnreadable and DivergedStatus."""
        return self._refresh_remote() if self.is_remote else self._refresh_local()

    def last_seen(self) -> Heads:
        """The heads of a URL as the last `refresh` that went well found them."""
        if not self.is_remote:
            return Heads(None, None)
        return Heads(self._kept(f"{_TRACKED}{self.branch}"), self._kept(f"{_TRACKED}{self.status_branch}"))

    def branches(self) -> list[str]:
        """The source's branches, for a message that names what could have been meant."""
        if self.is_remote:
            answer = self._remote("ls-remote", "--heads", "origin", timeout=_ANSWER_SECONDS)
            names = [line.partition("\t")[2] for line in answer.output.splitlines()]
        else:
            names = list(self._local().git.references)
        prefix = "refs/heads/"
        return sorted(name.removeprefix(prefix) for name in names if name.startswith(prefix))

    def push_status(self, commit: str, expected: str | None) -> None:
        """Makes `commit` the source's status branch if that still is `expected` (None: does not exist).

        Raises PushRejected when it is elsewhere or the source refuses, BranchCheckedOut when a work tree of the source
        has the branch checked out, RepositoryUnreadable when the source is away.
        """
        if expected is not None and not self.repository.is_ancestor(expected, commit):
            raise PushRejected(
                f"the status commit {commit} does not descend from {expected}", "read the status branch again"
            )
        if self.is_remote:
            self._push_remote(self.status_branch, commit, expected)
        else:
            self._push_local(commit, expected)

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

    def tidy(self) -> None:
        """Packs what accumulated, if it is time. Slow at times; objects that are referenced or young stay."""
        settings = {"gc.auto": "3000", "gc.autoPackLimit": "50", "gc.autoDetach": "false"}
        git(self.path, "gc", "--auto", "--quiet", settings=settings, timeout=_FETCH_SECONDS)

    def _kept(self, ref: str) -> str | None:
        commit = self.repository.ref(ref)
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

    # --- a URL

    def _remote(self, *arguments: str, timeout: float) -> Answer:
        settings = {"remote.origin.url": self.source, "gc.auto": "0", "maintenance.auto": "false"}
        return git(self.path, *arguments, settings=settings, timeout=timeout)

    def _refresh_remote(self) -> Heads:
        wanted = [f"refs/heads/{self.branch}", f"refs/heads/{self.status_branch}"]
        answer = self._remote("ls-remote", "origin", *wanted, timeout=_ANSWER_SECONDS)
        if answer.code != 0:
            raise RepositoryUnreadable(f"{redact(self.source)} does not answer: {answer.error}", _AWAY)
        there = {ref: commit for commit, _, ref in (line.partition("\t") for line in answer.output.splitlines())}
        fetched: list[str] = []
        for ref in wanted:
            tracking = _TRACKED + ref.removeprefix("refs/heads/")
            here = self.repository.ref(tracking)
            if ref not in there:
                if here is not None:
                    move_ref(self.repository, tracking, None, here)
            elif here != there[ref] or not self.repository.has(there[ref]):
                fetched.append(f"+{ref}:{tracking}")
        if fetched:
            answer = self._remote(
                "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "origin", *fetched, timeout=_FETCH_SECONDS
            )
            if answer.code != 0:
                raise RepositoryUnreadable(f"{redact(self.source)} cannot be fetched: {answer.error}", _AWAY)
        tracked = [self.repository.ref(_TRACKED + ref.removeprefix("refs/heads/")) for ref in wanted]
        return self._present(Heads(*tracked))

    def push_desired(self, commit: str, expected: str) -> None:
        """Makes `commit` the desired branch of a URL if that still is `expected`. Raises as `push_status` does."""
        self._push_remote(self.branch, commit, expected)

    def _push_remote(self, branch: str, commit: str, expected: str | None) -> None:
        ref = f"refs/heads/{branch}"
        lease = f"--force-with-lease={ref}:{expected or ''}"
        arguments = ("push", "--porcelain", "--no-verify", lease, "origin", f"{commit}:{ref}")
        answer = self._remote(*arguments, timeout=_FETCH_SECONDS)
        if answer.code == 0:
            self.repository.git.references.create(f"{_TRACKED}{branch}", commit, force=True)
            return
        refused = [line for line in answer.output.splitlines() if line.startswith("!")]
        if not refused:
            raise RepositoryUnreadable(f"{redact(self.source)} cannot be pushed to: {answer.error}", _AWAY)
        reason = redact(refused[0].rpartition("\t")[2])
        if "checked out" in reason or "checked out" in answer.error:
            raise BranchCheckedOut(f"{branch}: {reason}", "check out another branch there")
        raise PushRejected(f"{branch}: {reason}", "read it again, and see the source's rules for pushes")

    def _present(self, heads: Heads) -> Heads:
        for commit in heads:
            if commit is not None:
                self.repository.commit(commit)
        return heads
