"""A ref that is moved by this process itself: its file, flushed to disk while Python's other threads go on.

Called by write. git's library would do it as well, but it keeps other threads waiting while file and directory are
flushed: some milliseconds of each commit, in which a process that serves writes could judge a few of them. What needs
more than a new text in a file that is there is left to the library: a ref that has no file of its own yet, one that
stands for another, one whose moves may be logged, and whatever goes wrong before anything has changed.

It is done as git does it: the new text is written to the lock, `<ref>.lock`, which only one can make, and takes the
ref's place with its name (https://git-scm.com/docs/gitrepository-layout, *refs*).
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from reconciler.repository import library
from reconciler.repository.objects import Repository
from reconciler.repository.packwriting import flush_names

_LOGS = "core.logallrefupdates"


def move(repo: Repository, ref: str, commit: str, expected: str | None) -> bool:
    """Has `ref`, a name that the library takes for one, point to `commit` if that is here and the ref points to
    `expected` (None: to any commit); whether it does now. False: nothing was changed. Raises OSError where it is
    changed and perhaps not on disk."""
    if not repo.git.is_bare or _LOGS in repo.git.config or not repo.has(commit):
        return False
    path = repo.git_dir / ref
    lock = path.with_name(f"{path.name}.lock")
    try:
        if not _swapped(path, lock, commit, expected):
            return False
    except OSError:
        return False
    if library.flushes():
        flush_names(path.parent)
    return True


def _swapped(path: Path, lock: Path, commit: str, expected: str | None) -> bool:
    """Leaves no lock behind. Raises OSError where nothing was changed."""
    with lock.open("xb") as file:
        try:
            before = path.read_bytes()
            if not _is_commit(before) or expected not in (None, before[:40].decode()):
                lock.unlink()
                return False
            file.write(b"%b\n" % commit.encode())
            file.flush()
            if library.flushes():
                os.fsync(file.fileno())
            lock.replace(path)
        except BaseException:
            with suppress(OSError):
                lock.unlink()
            raise
    return True


def _is_commit(text: bytes) -> bool:
    return len(text) == 41 and text[40:] == b"\n" and text[:40].isalnum()
