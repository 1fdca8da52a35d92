"""A secret in a file of `keys/`, which is read anew when the file changes.

Called by the commands for what goes to a forge or a webhook. What the file holds stands in no message.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from reconciler.forges.errors import NotSaid

_LARGEST = 64 * 1024
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class KeyFile:
    """`name`: as messages have it, like keys/forges/token."""

    def __init__(self, path: Path, name: str) -> None:
        self._path, self._name = path, name
        self._seen: tuple[int, ...] = ()
        self._text = ""

    def __repr__(self) -> str:
        return f"KeyFile({self._name})"

    def read(self) -> str:
        """Without line breaks around it. Raises NotSaid."""
        try:
            handle = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            raise NotSaid(f"{self._name} cannot be read: {error.strerror}", f"write it to {self._path}") from None
        try:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                raise NotSaid(f"{self._name} is no file", f"write a file to {self._path}")
            if found.st_mode & _OTHERS:
                raise NotSaid(f"{self._name} may be read by others than its owner", f"chmod 600 {self._path}")
            seen = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
            if seen != self._seen:
                self._text, self._seen = self._content(os.read(handle, _LARGEST + 1)), seen
        finally:
            os.close(handle)
        return self._text

    def _content(self, data: bytes) -> str:
        text = data.decode("ascii", "replace").strip()
        if not text or len(data) > _LARGEST or not text.isprintable() or not text.isascii():
            raise NotSaid(f"{self._name} is empty, too long, or has characters that no secret has", "write it anew")
        return text
