"""A data directory before anything is done in it: made where there is none, this user's, and with room to write.

Called by whoever serves from one or fills one. What goes wrong later ends with a sentence, too (failure); what is
looked at here several processes would find at once, each of which would be started again and again.
"""

from __future__ import annotations

import errno
import fcntl
import os
import pwd
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from apiserver.auth.files import private_directory
from reconciler.commands.failure import BUSY, Failure, of_files

_ROOM = 1 << 20
"""Bytes that are written to see whether there is room: keys, logs and a store of a few
workspaces take most of it."""

LOCK = "lock"
RECOVERING = ".recovering"
"""Is there while `treeplane recover` fills the directory, and after one that was cut off."""


def require_place(directory: Path) -> None:
    """Makes the directory. Raises Failure."""
    if directory.exists() and not directory.is_dir():
        raise Failure(f"{directory} is a file, and no directory", "name another --data-dir")
    if directory.exists():
        _require_own(directory)
    try:
        private_directory(directory)
        _require_room(directory)
    except OSError as error:
        failure = of_files(error)
        if failure is None:
            raise
        raise Failure(f"the data directory {directory} cannot be used: {failure.message}") from error


@contextmanager
def only_one(directory: Path) -> Iterator[None]:
    """One server for a data directory."""
    with (directory / LOCK).open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise Failure(
                f"{directory} is in use by another treeplane up", "stop it, or choose another --data-dir", BUSY
            ) from error
        yield


def require_recovered(directory: Path) -> None:
    """Raises Failure where a recovery is half done."""
    if (directory / RECOVERING).exists():
        raise Failure(
            f"a recovery into {directory} was cut off, and only a part of it is there",
            "begin it anew: the same treeplane recover again",
        )


def of_disk(error: Exception, directory: Path) -> Failure | None:
    """What the disk of a data directory refused while it was used, whatever a library calls that; None for anything
    else."""
    found = of_files(error) if isinstance(error, OSError) else None
    if found is None and shutil.disk_usage(directory).free < _ROOM:
        found = of_files(OSError(errno.ENOSPC, "", str(directory)))
    return found


def _require_own(directory: Path) -> None:
    """Also for root, who may do anything: what root makes in there its owner could not read."""
    owner = directory.stat().st_uid
    if owner != os.geteuid():
        name = _name(owner)
        raise Failure(
            f"the data directory {directory} is {name}'s, and this is {_name(os.geteuid())}",
            f"run it as {name}, give it to this user (chown -R), or name another --data-dir",
        )


def _name(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


def _require_room(directory: Path) -> None:
    try:
        with tempfile.TemporaryFile(dir=directory) as file:
            file.write(b"\0" * _ROOM)
            file.flush()
    except OSError as error:
        error.filename = str(directory)
        raise
