"""The door to git's library: the one module that imports pygit2.

Called by this room's modules, which ask for what they need of it by these names; `Repository` (objects.py) is what
other rooms see of git. Only what is the library's own is here: opening, its errors, its types, its switches.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import pygit2
from pygit2.enums import Option, RepositoryOpenFlag, SortMode
from pygit2.references import References

from reconciler.repository.errors import RepositoryUnreadable

__all__ = [
    "FAILURES",
    "Author",
    "Blob",
    "Commit",
    "Handle",
    "Object",
    "Reference",
    "References",
    "Sign",
    "SortMode",
    "also_read",
    "bound_cache",
    "create",
    "flushes",
    "let_go",
    "open_directory",
    "set_fsync",
]

Handle: TypeAlias = pygit2.Repository
Object: TypeAlias = pygit2.Object
Commit: TypeAlias = pygit2.Commit
Blob: TypeAlias = pygit2.Blob
Reference: TypeAlias = pygit2.Reference

FAILURES: Final = (KeyError, ValueError, pygit2.GitError)
"""What the library raises of an object or a ref: absent, no name of one, or not to be read."""

Sign: TypeAlias = Callable[[bytes], str]
"""What a commit's bytes are signed with: it returns the armored signature."""

_CACHE: Final = 8 * 1024 * 1024
"""Bytes: tens of thousands of commits; of trees, what `Repository` remembers is asked first."""


class _Flushing:
    on = True


class Author(NamedTuple):
    """`when`: seconds since 1970."""

    name: str
    mail: str
    when: int


def set_fsync(enabled: bool) -> None:
    """Whether this process's writes to git are flushed to disk before they count. For the whole process."""
    pygit2.option(Option.ENABLE_FSYNC_GITDIR, enabled)
    _Flushing.on = enabled


def flushes() -> bool:
    """What `set_fsync` said last; at first that packs are flushed, as git's own program does it."""
    return _Flushing.on


def bound_cache(most: int = _CACHE) -> None:
    """Has git's library keep at most `most` bytes of commits and trees, of all repositories together. For the whole
    process. Left to itself it keeps 256 MiB, and every commit of a server adds to it."""
    pygit2.option(Option.SET_CACHE_MAX_SIZE, most)


def create(directory: Path, branch: str | None = None) -> None:
    """An empty bare repository in `directory`, or what is missing of one. `branch`: what HEAD names (None: git's own
    choice)."""
    pygit2.init_repository(str(directory), bare=True, initial_head=branch)


def open_directory(path: Path) -> Handle:
    """Of a bare repository or a work tree's top; never searches upwards. Raises RepositoryUnreadable."""
    if not path.exists():
        raise RepositoryUnreadable(f"there is no repository at {path}", "check the path")
    try:
        found = pygit2.Repository(str(path), RepositoryOpenFlag.NO_SEARCH)
    except FAILURES as error:
        raise RepositoryUnreadable(f"{path} cannot be read as a git repository ({error})", _hint(str(error))) from error
    # They hold it as it holds them. Of such a circle only the garbage collector would let go, late: it counts a few
    # objects of Python, and sees neither the memory nor the open files behind them.
    for circular in ("branches", "references", "remotes", "submodules"):
        vars(found).pop(circular, None)
    return found


def also_read(git: Handle, objects: Path) -> None:
    """Has a handle find the objects of a further directory, until it goes. Raises FAILURES."""
    git.odb.add_disk_alternate(str(objects))


def let_go(git: Handle) -> None:
    """Closes what a handle has open, though somebody may hold it still."""
    git.free()


def _hint(message: str) -> str:
    if "owner" in message or "owned" in message:
        return "it belongs to another user; allow it with: git config --global --add safe.directory <path>"
    if "sha256" in message or "object format" in message:
        return "repositories with SHA-256 ids are not supported; use one with SHA-1"
    if "extension" in message:
        return "it uses an extension of git's format that is not supported"
    return "check that it is a git repository and that you may read it"
