"""Commits onto the desired branch of the source, for writes that came through the API.

Called by the committer (loading). A commit is made first and becomes the branch's only with `publish`, by
compare-and-swap, so that it can be judged in between; one that nobody publishes is garbage that git collects. While it
is judged it goes to the disk, in a thread of its own: whoever reads it reads it from memory until it is there. A branch
that a work tree has checked out is never moved: its files would be left behind.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait

from reconciler.repository import library
from reconciler.repository.errors import BranchCheckedOut, PushRejected, RefMoved, RepositoryUnreadable
from reconciler.repository.keptopen import KeptOpen
from reconciler.repository.mirror import Mirror
from reconciler.repository.objects import CommitInfo, Repository, Unwritten
from reconciler.repository.source import checked_out
from reconciler.repository.write import AUTHOR, MAIL, Batch, Blob, authored_bytes, move_ref, plan_tree

_UNNAMED = re.compile(r"[\x00-\x20\x7f<>]+")
_NOT_MAIL = re.compile(r"[^A-Za-z0-9._+-]+")
_COMMIT = 1
_KEPT = 4 * 1024 * 1024
"""Bytes of a published commit that may stay in memory for the next one, which goes on from it."""


class Desired:
    """The desired branch of a mirror's source. Not thread-safe."""

    def __init__(
        self, mirror: Mirror, ours: Callable[[], None] = lambda: None, sign: library.Sign | None = None
    ) -> None:
        """`ours`: called before the branch moves; raises where that is another process's to do. `sign`: see
        library.Sign; None leaves commits unsigned."""
        self._mirror, self._ours, self._sign = mirror, ours, sign
        self._ref = f"refs/heads/{mirror.branch}"
        self._kept = KeptOpen(mirror.source)
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="commit-writer")

    def barred(self) -> str:
        """Why the branch cannot be moved whatever the commit says; "" if it can."""
        if self._mirror.is_remote:
            return ""
        source = self._kept.repository()
        holder = checked_out(source.git_dir).get(self._ref)
        if holder is not None:
            return f"branch {self._mirror.branch} is checked out in {holder}, so no commit is put on it from here"
        if source.ref(self._ref) is None:
            return f"{self._mirror.source} has no branch {self._mirror.branch} of its own"
        return ""

    def commit(
        self, base: str, changes: Mapping[str, bytes | Blob | None], author: str | None, message: str
    ) -> str | None:
        """A commit on top of `base` with `changes` made (as write.edit_tree takes them), by `author`, a user's name, or
        by Treeplane itself. None where they change nothing. It is read through the mirror from here on, and `publish`
        waits for it to be written."""
        repo, batch = self._mirror.repository, Batch()
        before = repo.commit(base).tree
        tree = plan_tree(repo, before, changes, batch)
        if tree == before:
            return None
        now = int(time.time())
        name, mail = signature(author) if author is not None else (AUTHOR, MAIL)
        people = library.Author(name, mail, now), library.Author(AUTHOR, MAIL, now)
        commit = batch.add(_COMMIT, authored_bytes(tree, [base], message, people, self._sign))
        made = CommitInfo(commit, (base,), tree, now, f"{name} <{mail}>", message)
        self._let_write()
        repo.read_ahead(Unwritten(made, dict(batch.objects), self._writer.submit(self._write, batch)))
        return commit

    def written(self) -> None:
        """Returns once what was committed last is on disk. Raises RepositoryUnreadable where it cannot be."""
        made = self._mirror.repository.unwritten
        if made is not None:
            made.written.result()

    def publish(self, commit: str, expected: str) -> None:
        """Makes `commit` the branch's head if that still is `expected`.

        Raises PushRejected when it is elsewhere or the source refuses, BranchCheckedOut when a work tree has it,
        RepositoryUnreadable when the source is away.
        """
        self.written()
        self._ours()
        self._move(commit, expected)
        made = self._mirror.repository.unwritten
        if made is not None and sum(len(data) for _, data in made.objects.values()) > _KEPT:
            self._mirror.repository.read_ahead(None)

    def _move(self, commit: str, expected: str) -> None:
        if self._mirror.is_remote:
            self._mirror.push_desired(commit, expected)
            return
        why = self.barred()
        if why:
            raise BranchCheckedOut(why, "check out another branch there")
        try:
            move_ref(self._kept.repository(), self._ref, commit, expected)
        except RefMoved as error:
            raise PushRejected(error.what, error.hint) from error

    def _let_write(self) -> None:
        """Until nothing is on its way: what was not published may be read still, where it was refused."""
        made = self._mirror.repository.unwritten
        if made is not None:
            wait([made.written])

    def _write(self, batch: Batch) -> None:
        target = self._target()
        try:
            batch.write(target)
        except library.FAILURES as error:
            raise RepositoryUnreadable(f"{target.path} cannot be written to ({error})") from error

    def _target(self) -> Repository:
        """Where new objects are written: the source itself if it is on this machine, which the mirror reads through."""
        return self._mirror.repository if self._mirror.is_remote else self._kept.repository()


def signature(user: str) -> tuple[str, str]:
    """Name and mail of a user as git takes them. A user's name need not be a person's: `system:admin`."""
    name = _UNNAMED.sub(" ", user).strip(" .,:;\"'\\") or "unknown"
    if re.fullmatch(r"[^\s<>@]+@[^\s<>@]+", name):
        return name, name
    return name, f"{_NOT_MAIL.sub('-', name).strip('-') or 'unknown'}@{MAIL.partition('@')[2]}"
