"""Makes the repository that a server hosts of a clone of one that was hosted: with every branch that the clone has or
tracks, so that what was lost with the server is there again.

Called by the command line (source). The clone stays as it is, a clone of what is made.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from reconciler.repository import library
from reconciler.repository.command import git
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.local import Local
from reconciler.repository.objects import Repository
from reconciler.repository.origin import incomplete

_TRACKED = "refs/remotes/origin/"


def rehost(clone: Path, git_dir: Path, branch: str) -> str:
    """Creates the bare repository `git_dir`; returns the commit that `branch` is at. Of a branch that the clone has and
    tracks, the one that goes on from the other counts.

    Raises RepositoryUnreadable where the clone is not whole, lacks the branch, or has and tracks it at commits of which
    neither goes on from the other. All or nothing: a repository that is there is whole.
    """
    source = Repository(clone)
    missing = incomplete(source)
    if missing:
        raise RepositoryUnreadable(f"{clone} is a shallow or partial clone and lacks history", missing)
    heads = _heads(clone, source)
    if branch not in heads:
        raise RepositoryUnreadable(f"{clone} has no branch {branch}", "check out that branch there, or fetch it")
    unfinished = git_dir.with_name(git_dir.name + ".new")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True, mode=0o700)
    library.create(unfinished, branch)
    _fetch(unfinished, clone, heads)
    made = Repository(unfinished)
    for name, commit in heads.items():
        made.references.create(f"refs/heads/{name}", commit, force=True)
    unfinished.rename(git_dir)
    return heads[branch]


def behind(clone: Path, git_dir: Path, branch: str) -> bool:
    """Whether the clone's own branch has commits that the hosted repository lacks."""
    own = Repository(clone).ref(f"refs/heads/{branch}")
    return own is not None and not Repository(git_dir).has(own)


def _heads(clone: Path, source: Repository) -> dict[str, str]:
    names = {name.removeprefix("refs/heads/") for name in Local(str(clone)).branches()} - {"HEAD"}
    found = {name: Local(str(clone)).newest(name) for name in names}
    return {name: commit for name, commit in found.items() if commit is not None and source.has(commit)}


def _fetch(git_dir: Path, clone: Path, heads: dict[str, str]) -> None:
    """Objects of all branches, and the tags. By refs, as a repository need not give away commits by their ids."""
    wanted = ["+refs/heads/*:refs/treeplane/taken/own/*", f"+{_TRACKED}*:refs/treeplane/taken/tracked/*"]
    wanted += ["+refs/tags/*:refs/tags/*", "+refs/treeplane/status/*:refs/treeplane/status/*"]
    answer = git(git_dir, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", str(clone), *wanted)
    if answer.code != 0:
        raise RepositoryUnreadable(f"{clone} cannot be read: {answer.error}")
    made = Repository(git_dir)
    lacking = [commit for commit in heads.values() if not made.has(commit)]
    if lacking:
        raise RepositoryUnreadable(f"{clone} lacks {lacking[0]}")
    for name in list(made.references):
        if name.startswith("refs/treeplane/taken/"):
            made.references.delete(name)
