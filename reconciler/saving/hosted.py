"""The repository that a server hosts itself: all of it, into a backup and back.

Where nothing else is served it may be the only copy there is; of one on a forge, or of a clone that is served where it
is, a backup has no more than `unpushed`. Called by `contents` for a backup, and by `treeplane recover` and `drill`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from apiserver.model.hostedrepository import PLACE
from reconciler.repository import library
from reconciler.repository.borrowed import borrow
from reconciler.repository.bundle import bundle, heads, unbundle
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.mirror import HISTORY
from reconciler.repository.objects import Repository
from reconciler.repository.source import is_git_dir
from reconciler.saving.lender import lender

BUNDLE = "repository.bundle"
_HEADS = "refs/heads/"
_KEPT = (_HEADS, "refs/tags/", HISTORY)
_LOOKS = 50


def hosted(data_dir: Path) -> Path | None:
    """The hosted repository, unless something else is served by now: a mirror borrows of what it mirrors."""
    found, mirror = data_dir / PLACE, data_dir / "mirror"
    if not is_git_dir(found):
        return None
    if not is_git_dir(mirror):
        return found
    return found if lender(data_dir) == found.resolve() else None


def saved(git_dir: Path, file: Path) -> bool:
    """Writes all branches and tags into `file`, as they stood together at one moment; whether there is any. The
    repository is only read, and may be pushed to. Raises RepositoryUnreadable."""
    repo = Repository(git_dir)
    found = _together(repo)
    with tempfile.TemporaryDirectory(prefix="treeplane-") as scratch:
        still = borrow(repo, Path(scratch) / "still.git")  # in which no ref moves while git writes
        for name, commit in found.items():
            still.references.create(name, commit, force=True)
        return bundle(still, sorted(found), (), file)


def brought_back(file: Path, git_dir: Path, branch: str) -> None:
    """Makes the bare repository `git_dir` of such a file, which has to have `branch`. No refs come back but those that
    are saved. Raises RepositoryUnreadable."""
    git_dir.mkdir(parents=True, mode=0o700)
    library.create(git_dir, branch)
    repo = Repository(git_dir)
    there = {name.removeprefix(_HEADS) for name in heads(repo, file) if name.startswith(_HEADS)}
    if branch not in there:
        named = ", ".join(sorted(there)) or "none"
        raise RepositoryUnreadable(f"its repository has no branch {branch}", f"give --branch; there are: {named}")
    unbundle(repo, file, {f"{prefix}*": f"{prefix}*" for prefix in _KEPT})  # as patterns, however many there are


def _together(repo: Repository) -> dict[str, str]:
    """Read twice alike: in between, all of them stood so. Else a branch could be older than what is recorded of it."""
    before = _refs(repo)
    for _ in range(_LOOKS):
        found = _refs(repo)
        if found == before:
            return found
        before = found
    raise RepositoryUnreadable(f"{repo.path} is pushed to without a pause", "make the backup again in a moment")


def _refs(repo: Repository) -> dict[str, str]:
    named = ((name, repo.ref(name)) for name in repo.references if name.startswith(_KEPT))
    return {name: commit for name, commit in named if commit is not None}
