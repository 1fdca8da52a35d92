"""What stands in the directory that a fleet is made of: read once, so that all that follows speaks of the same bytes.

Called by adoption. No link is followed, neither to a file nor on the way to one: directories are opened from their
parents, files without following, and what is no regular file is not opened for long. All of it is bounded.
"""

from __future__ import annotations

import os
import stat
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from reconciler.commands.failure import USAGE, Failure
from reconciler.layout.yamldoc import LIMIT

_DEEPEST = 40
"""Directories in one another: what is written gets a few more, of the 64 that a fleet may have."""
_MOST = 100_000
"""Files."""
_ALL = 512 * 1024 * 1024
"""Bytes of all that is kept."""
_GITS = (".git", "git~1")
"""In whatever case: git takes none of these."""
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class LeftOut(NamedTuple):
    """A file of the directory, or a directory with all that is in it, that is not taken. `missed`: what it holds would
    be served if it could be taken."""

    path: str
    reason: str
    missed: bool = False


@dataclass(slots=True)
class LookedAt:
    """By path, relative and with `/`. `directories` has "" for the directory itself; `private`: files that nobody but
    their owner may read."""

    files: dict[str, bytes] = field(default_factory=dict)
    left: list[LeftOut] = field(default_factory=list)
    directories: set[str] = field(default_factory=set)
    private: set[str] = field(default_factory=set)
    _sorted: list[str] = field(default_factory=list)

    def below(self, directory: str) -> list[str]:
        """The files in a directory and those in it, sorted; asked once all files are there."""
        if len(self._sorted) != len(self.files):
            self._sorted = sorted(self.files)
        if not directory:
            return self._sorted
        # "0" follows "/".
        first, last = (bisect_left(self._sorted, f"{directory}{sign}") for sign in "/0")
        return self._sorted[first:last]


def look(directory: Path) -> LookedAt:
    """Raises Failure where there is nothing to look at, or too much."""
    found, size = LookedAt(), 0
    try:
        top = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise Failure(f"{directory} cannot be read ({error.strerror})", "name a directory", USAGE) from error
    for at, path, name in _names(top, "", found):
        if len(found.files) + len(found.left) >= _MOST:
            raise Failure(f"{directory} holds more than {_MOST:,} files", "name a directory in it", USAGE)
        read = _read(at, name)
        if isinstance(read, bytes) and size + len(read) > _ALL:
            read = f"more than {_ALL >> 20} MiB stand before it"
        if isinstance(read, str):
            found.left.append(LeftOut(path, read, True))
        else:
            size += len(read)
            found.files[path] = read
            if not _mode(at, name) & 0o077:
                found.private.add(path)
    return found


def above(path: str) -> Iterator[str]:
    """The directories that a path is in, the innermost first, "" last."""
    while path:
        path = path.rpartition("/")[0]
        yield path


def within(path: str, directory: str) -> bool:
    """`directory`: "" for the top."""
    return not directory or path == directory or path.startswith(f"{directory}/")


def _names(at: int, path: str, found: LookedAt) -> Iterator[tuple[int, str, str]]:
    """The descriptor of a directory, with path and name of what is no directory in it; closes `at`."""
    found.directories.add(path)
    try:
        try:
            names = sorted(os.listdir(at))
        except OSError as error:
            found.left.append(LeftOut(path or ".", f"a directory that cannot be read ({error.strerror})", True))
            return
        for name in names:
            inner = f"{path}/{name}" if path else name
            if name.lower() in _GITS:
                found.left.append(LeftOut(inner, "git's own"))
            elif _told(name) != name:
                found.left.append(LeftOut(_told(inner), "its name is no UTF-8, or has signs that nobody can see", True))
            elif not stat.S_ISDIR(_mode(at, name)):
                yield at, inner, name
            elif path.count("/") >= _DEEPEST:
                found.left.append(LeftOut(inner, f"more than {_DEEPEST} directories in one another", True))
            else:
                yield from _below(at, name, inner, found)
    finally:
        os.close(at)


def _below(at: int, name: str, path: str, found: LookedAt) -> Iterator[tuple[int, str, str]]:
    try:
        inner = os.open(name, _FLAGS | os.O_DIRECTORY, dir_fd=at)
    except OSError as error:
        found.left.append(LeftOut(path, f"a directory that cannot be read ({error.strerror})", True))
        return
    yield from _names(inner, path, found)


def _read(at: int, name: str) -> bytes | str:
    """What a file holds, or why that is not taken."""
    if stat.S_ISLNK(_mode(at, name)):
        return "a symbolic link: none is followed; put the file itself in its place"
    try:
        descriptor = os.open(name, _FLAGS, dir_fd=at)
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return "is no regular file"
        try:
            data = file.read(LIMIT + 1)
        except OSError as error:
            return f"cannot be read ({error.strerror})"
    return data if len(data) <= LIMIT else f"has more than {LIMIT >> 20} MiB: split it"


def _mode(at: int, name: str) -> int:
    """0 where nobody can say."""
    try:
        return os.stat(name, dir_fd=at, follow_symlinks=False).st_mode
    except OSError:
        return 0


def _told(path: str) -> str:
    """As it can be shown and written down."""
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
