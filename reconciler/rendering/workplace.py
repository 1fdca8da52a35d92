"""Where files are laid out while they are rendered: a directory for each run, gone with it.

Called by renderer. A process that is killed leaves its own behind, locked no more, and the next one takes it away.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

_LOCK = "lock"
_YOUNG = 600.0
"""Seconds for which a directory without a lock may be one that is just being made."""


class Workplace:
    """Below a directory that several processes may share. A fork makes a place of its own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self._mine: tuple[int, Path, int] | None = None

    @contextlib.contextmanager
    def room(self) -> Iterator[Path]:
        """An empty directory. Raises OSError."""
        place = Path(tempfile.mkdtemp(dir=self._place(), prefix="run-"))
        try:
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def close(self) -> None:
        """Leaves nothing of this process."""
        with self._lock:
            if self._mine is not None and self._mine[0] == os.getpid():
                os.close(self._mine[2])
                shutil.rmtree(self._mine[1], ignore_errors=True)
            self._mine = None

    def _place(self) -> Path:
        with self._lock:
            if self._mine is None or self._mine[0] != os.getpid():
                make_private(self._directory)
                self._clear()
                made = Path(tempfile.mkdtemp(dir=self._directory, prefix="process-"))
                # Held as long as the process lives; whoever finds it free finds a process that is gone.
                lock = os.open(made / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
                fcntl.flock(lock, fcntl.LOCK_EX)
                self._mine = os.getpid(), made, lock
            return self._mine[1]

    def _clear(self) -> None:
        for left in self._directory.glob("process-*"):
            with contextlib.suppress(OSError):
                if _is_left(left):
                    shutil.rmtree(left, ignore_errors=True)


def make_private(directory: Path) -> None:
    """Makes it and what is missing above it, for this user alone."""
    if not directory.is_dir():
        make_private(directory.parent)
        directory.mkdir(mode=0o700, exist_ok=True)


def _is_left(place: Path) -> bool:
    """Whether no process works there any more."""
    try:
        descriptor = os.open(place / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return time.time() - place.stat().st_mtime > _YOUNG
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True
