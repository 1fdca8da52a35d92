"""What a branch's head left behind when it went elsewhere: kept in the mirror for a while, so that none of it is lost.

Called by mirror, for the loader. A ref `refs/treeplane/keep/<date>-<commit>` holds the commit, and the mirror its
objects: one that borrows them from a source on this machine would lose them with the source's next `git gc`. What `old`
shares with `new` needs no copy, since a head that leaves `new` is kept in its turn.
"""

from __future__ import annotations

import logging
import re
from datetime import date, timedelta

from reconciler.repository.command import git
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.objects import Repository

KEPT = "refs/treeplane/keep/"
KEPT_DAYS = 90

log = logging.getLogger(__name__)

_NAME = re.compile(re.escape(KEPT) + r"(\d{4}-\d\d-\d\d)-[0-9a-f]{40}")


def keep(repo: Repository, old: str, new: str, today: date) -> str | None:
    """The ref that keeps what the commit `old` has and `new` lacks; None where there is nothing (`new` contains it) or
    nothing any more. What was kept for longer than KEPT_DAYS is let go. Raises RepositoryUnreadable."""
    forget(repo, today)
    if repo.is_ancestor(old, new):
        return None
    if not repo.has(old):
        log.warning("%s cannot be kept: its objects are gone", old)
        return None
    arguments = ("pack-objects", "--revs", "--non-empty", "--quiet", str(repo.git_dir / "objects" / "pack" / "pack"))
    answer = git(repo.git_dir, *arguments, given=f"{old}\n^{new}\n".encode())
    if answer.code != 0:
        raise RepositoryUnreadable(f"{old} cannot be kept: {answer.error}")
    ref = f"{KEPT}{today.isoformat()}-{old}"
    repo.references.create(ref, old, force=True)
    return ref


def forget(repo: Repository, today: date) -> None:
    """Lets go of what was kept for longer than KEPT_DAYS."""
    for name in repo.references.iterator():
        found = _NAME.fullmatch(name.name)
        if found is not None and date.fromisoformat(found[1]) < today - timedelta(days=KEPT_DAYS):
            repo.references.delete(name.name)


def is_kept(ref: str) -> bool:
    """Whether it is the name of a ref that keeps something."""
    return _NAME.fullmatch(ref) is not None


def left_behind(repo: Repository, commit: str) -> bool:
    """Whether the commit is one that was served, until the branch's head went elsewhere."""
    kept = (str(name.target) for name in repo.references.iterator() if _NAME.fullmatch(name.name))
    return any(repo.is_ancestor(commit, head) for head in kept)
