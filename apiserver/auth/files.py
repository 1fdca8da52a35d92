"""Files that hold secrets: created whole, readable by their owner only.

Called by pki.py and kubeconfig.py. `stamp` is for whoever looks whether such a file has changed.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

Stamp = tuple[int, int, int]
"""Differs once a file was replaced or written to."""


def stamp(path: Path) -> Stamp | None:
    """None where there is no such file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def private_directory(path: Path) -> None:
    """Make `path` with mode 0700; an existing directory is narrowed to it."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    if path.stat().st_mode & 0o077:
        path.chmod(0o700)


def write_private(path: Path, content: bytes) -> None:
    """Replace `path` by `content`, mode 0600, so that a reader sees the old file or the new one, never a part."""
    # mkstemp makes the file 0600 from the start: there is no moment in which others can open it.
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(name).unlink()
        raise


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold `directory` against other processes that write into it."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
