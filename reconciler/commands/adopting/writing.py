"""Writes a planned fleet: below a directory that is empty, or is made, and nowhere else.

Called by adoption. Nothing that is there is opened, and no link is gone through: each directory is made here and kept
open by whoever writes into it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

from reconciler.commands.failure import USAGE, Failure

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_IN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def require_place(directory: Path, source: Path) -> None:
    """That a fleet which is made of `source` can be written to `directory`. Raises Failure."""
    to, of = directory.resolve(), source.resolve()
    if to == of or of in to.parents:
        raise Failure(f"{directory} is {source}, or in it, and that is left as it is", "name another directory", USAGE)
    if not directory.exists() and not directory.is_symlink():
        return
    try:
        there = sorted(each.name for each in directory.iterdir() if each.name != ".git")
    except OSError as error:
        raise Failure(f"{directory}: {error.strerror}", "name a directory that is empty or new", USAGE) from error
    if there:
        text = f"{directory} is not empty: it holds {there[0][:100]!r}"
        raise Failure(text, "name a directory that is empty or new: treeplane init --from DIR DIRECTORY", USAGE)


def write(directory: Path, files: Mapping[str, bytes], private: Collection[str] = ()) -> None:
    """`files`: by path below `directory`; `private`: those of them for their owner alone. Raises Failure."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        top = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for path in sorted(files):
                _write(top, path.split("/"), files[path], 0o600 if path in private else 0o666)
        finally:
            os.close(top)
    except OSError as error:
        text = f"{directory}: {error.filename or ''} {error.strerror}"
        raise Failure(text, "make room for it, or name another directory") from error


def _write(top: int, names: list[str], data: bytes, mode: int) -> None:
    *directories, name = names
    at = os.dup(top)
    try:
        for each in directories:
            with suppress(FileExistsError):
                os.mkdir(each, dir_fd=at)
            inner = os.open(each, _IN, dir_fd=at)
            os.close(at)
            at = inner
        with os.fdopen(os.open(name, _NEW, mode, dir_fd=at), "wb") as file:
            file.write(data)
    finally:
        os.close(at)
