"""A data directory before anything is done in it: made where there is none, this user's, and with room to write.

Called by whoever serves from one or fills one. What goes wrong later ends with a sentence, too (failure); what is
looked at here several processes would find at once, each of which would be started again and again.
"""

from __future__ import annotations

import errno
import os
import pwd
import shutil
import tempfile
from pathlib import Path

from apiserver.auth.files import private_directory
from reconciler.commands.failure import Failure, of_files

_ROOM = 1 << 20
"""Bytes that are written to see whether there is room: keys, logs and a store of a few
workspaces take most of it."""


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
