"""What the user named as the repository: a URL, a repository on this machine, or a plain directory.

Called by mirror, watch and the command line.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from reconciler.repository.errors import RepositoryUnreadable

SourceKind = Literal["url", "repository", "directory"]

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_SCP = re.compile(r"[A-Za-z0-9_.-]+@?[A-Za-z0-9_.-]*:(?!/{2})")


def kind_of_source(text: str) -> SourceKind:
    """`https://…`, `file://…`, `ssh://…` and `user@host:path` are URLs; a directory is a repository only if it is one
    itself, never because one above it is. Raises RepositoryUnreadable when nothing is there."""
    if is_url(text):
        return "url"
    path = Path(text)
    if path.is_dir():
        return "repository" if is_repository(path) else "directory"
    what = "is not a directory" if path.exists() else "does not exist"
    raise RepositoryUnreadable(f"{text} {what}", "name a git repository, its URL or a directory of manifests")


def is_url(text: str) -> bool:
    if _URL.match(text):
        return True
    return not text.startswith((".", "/", "~")) and _SCP.match(text) is not None and not Path(text).exists()


def is_repository(path: Path) -> bool:
    """Whether the directory is a work tree's top or a bare repository."""
    return (path / ".git").exists() or is_git_dir(path)


def is_git_dir(path: Path) -> bool:
    return (path / "HEAD").is_file() and (path / "objects").is_dir() and (path / "refs").is_dir()


def checked_out(git_dir: Path) -> dict[str, Path]:
    """Branches (full ref names) that a work tree of this repository has checked out → where.

    `git_dir` is the common directory. Read from the HEAD files, so a work tree in the middle of a rebase counts by the
    branch it left.
    """
    found: dict[str, Path] = {}
    if git_dir.name == ".git":
        found |= _head(git_dir, git_dir.parent)
    for linked in sorted((git_dir / "worktrees").glob("*")):
        gitdir = linked / "gitdir"
        if gitdir.is_file():
            found |= _head(linked, Path(gitdir.read_text().strip()).parent)
    return found


def _head(directory: Path, work_tree: Path) -> dict[str, Path]:
    out: dict[str, Path] = {}
    for name, mark in (("HEAD", "ref:"), ("rebase-merge/head-name", ""), ("rebase-apply/head-name", "")):
        file = directory / name
        if file.is_file():
            text = file.read_text().strip()
            if text.startswith(mark or "refs/"):
                out[text.removeprefix("ref:").strip()] = work_tree
    return out
