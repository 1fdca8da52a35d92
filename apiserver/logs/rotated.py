"""A file of lines that never grows beyond a bound: a full one is set aside as FILE.1, the one before as FILE.2, and so
on; the oldest ones are removed.

Used for the log (by the one process that writes it) and for the log of pushes (by all API workers): whoever appends
holds a lock, and looks whether the file is still the one of that name.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class RotatedFile:
    """`most`: bytes of one; `kept`: how many that are full stay beside it. Its owner alone may read them. Who may write
    into its directory may put anything there, so that is the owner's, too."""

    path: Path
    most: int
    kept: int

    def append(self, lines: bytes, *, durable: bool = False) -> None:
        """`durable`: it is on the disk when this returns. Raises OSError."""
        handle = self._with_room(len(lines))
        try:
            size = os.fstat(handle).st_size
            lines = self._whole(handle, size) + lines
            while lines:
                lines = lines[os.write(handle, lines) :]
            if durable:
                _sync(handle)
                if not size:
                    _sync_directory(self.path.parent)
        finally:
            os.close(handle)

    def files(self) -> Iterator[Path]:
        """Those that are there, the oldest first."""
        for number in range(self.kept, 0, -1):
            if self._aside(number).exists():
                yield self._aside(number)
        if self.path.exists():
            yield self.path

    def _with_room(self, count: int) -> int:
        """As _locked, of a file that takes so many bytes more, or is empty. Where a full one is set aside, others may
        have appended to the next one before it is locked here."""
        while True:
            handle = self._locked()
            try:
                size = os.fstat(handle).st_size
                if not size or size + count <= self.most:
                    return handle
                self._set_aside()
            except OSError:
                os.close(handle)
                raise
            os.close(handle)

    def _locked(self) -> int:
        """Open, and nobody else appends until it is closed."""
        while True:
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            handle = os.open(self.path, flags, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                if os.fstat(handle).st_ino == self.path.stat().st_ino:
                    return handle
            except FileNotFoundError:
                pass
            except OSError:
                os.close(handle)
                raise
            os.close(handle)  # set aside meanwhile, by another process or by a program of the machine

    def _set_aside(self) -> None:
        if not self.kept:
            self.path.unlink()
            return
        for number in range(self.kept - 1, 0, -1):
            if self._aside(number).exists():
                self._aside(number).replace(self._aside(number + 1))
        self.path.replace(self._aside(1))

    def _aside(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")

    @staticmethod
    def _whole(handle: int, size: int) -> bytes:
        """What has to go before a line: a process that was killed, or had no room, may have left half of one."""
        return b"\n" if size and os.pread(handle, 1, size - 1) != b"\n" else b""


def _sync(handle: int) -> None:
    getattr(os, "fdatasync", os.fsync)(handle)


def _sync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
