"""A lock that threads and processes share, on a repository that is ours: for what git's own locks do not cover.

Used by remote.py. A lock is a file of the kernel's, free when its process ends; a number stands in it that outlives
both.
"""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path


class SharedLock:
    """`with lock:`; not twice in one thread. `file` is no name that git knows."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._threads = threading.Lock()
        self._fd = -1

    def __enter__(self) -> None:
        self._threads.acquire()
        try:
            fd = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
            except BaseException:
                os.close(fd)
                raise
            self._fd = fd
        except BaseException:
            self._threads.release()
            raise

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)
        self._threads.release()

    @property
    def number(self) -> int:
        """How often `count` was called, by whomever."""
        try:
            return int(self._file.read_bytes() or b"0")
        except FileNotFoundError:
            return 0

    def count(self) -> None:
        """While it is held."""
        os.pwrite(self._fd, b"%020d" % (self.number + 1), 0)
