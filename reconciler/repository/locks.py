"""Lock files that a killed process left in a repository: git waits for nobody and removes none.

Called by the reconciler's process when it starts, and has made sure that it is the only one. In the mirror every lock
is a former self's. In the source, which others write to as well, one of a branch is ours if it holds the id of a commit
that only we could have put there; one that says nothing yet is taken for abandoned after a minute.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterable
from pathlib import Path

from reconciler.repository.errors import RepositoryError
from reconciler.repository.objects import Repository
from reconciler.repository.write import AUTHOR

log = logging.getLogger(__name__)

_ABANDONED_SECONDS = 60.0


def clear(git_dir: Path) -> None:
    """Removes every lock of refs in a repository that nobody else writes to."""
    for lock in (*git_dir.glob("*.lock"), *(git_dir / "refs").rglob("*.lock")):
        _remove(lock)


def clear_refs(git_dir: Path, refs: Iterable[str]) -> None:
    """Removes those of these refs (full names; with a slash at the end: all below) in a repository where nobody else
    moves them."""
    for ref in refs:
        found = (git_dir / ref).rglob("*.lock") if ref.endswith("/") else [git_dir / f"{ref}.lock"]
        for lock in filter(Path.exists, found):
            _remove(lock)


def clear_own(repo: Repository, refs: Iterable[str]) -> None:
    """Removes the locks of these refs (full names) that a former self left."""
    for ref in refs:
        lock = repo.git_dir / f"{ref}.lock"
        try:
            said, age = lock.read_text("ascii", "replace").strip(), time.time() - lock.stat().st_mtime
        except OSError:
            continue
        if _is_ours(repo, said) if said else age > _ABANDONED_SECONDS:
            _remove(lock)


def _is_ours(repo: Repository, commit: str) -> bool:
    with contextlib.suppress(RepositoryError):
        return repo.committer(commit) == AUTHOR
    return False


def _remove(lock: Path) -> None:
    log.warning("removing %s, which a process that was killed left", lock)
    lock.unlink(missing_ok=True)
