"""A secret in a file, which is read anew when the file changes.

Called by whoever needs one secret as it is now: endpoints that check what was signed with it, and the reconciler for
what it shows to forges and git servers. A file that others may read is refused. What a file holds stands in no message.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

_LARGEST = 64 * 1024
_GROUP_AND_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class NoSecret(ValueError):
    """`text` says what is wrong with which file, `hint` what to do."""

    def __init__(self, text: str, hint: str) -> None:
        super().__init__(f"{text}: {hint}")
        self.text, self.hint = text, hint


class SecretFile:
    """`name`: as messages have it, like keys/forges/token. `least`: how many characters such a secret has."""

    def __init__(self, path: Path, name: str, least: int = 1) -> None:
        self._path, self._name, self._least = path, name, least
        self._seen: tuple[int, ...] = ()
        self._text = ""

    def __repr__(self) -> str:
        return f"SecretFile({self._name})"

    def read(self) -> str:
        """Without line breaks around it. Raises NoSecret."""
        try:
            handle = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            raise NoSecret(f"{self._name} cannot be read: {error.strerror}", f"write it to {self._path}") from None
        try:
            found = os.fstat(handle)
            check_private(found, self._path, self._name)
            seen = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
            if seen != self._seen:
                self._text, self._seen = self._content(os.read(handle, _LARGEST + 1)), seen
        finally:
            os.close(handle)
        return self._text

    def _content(self, data: bytes) -> str:
        text = data.decode("ascii", "replace").strip()
        if not text or len(data) > _LARGEST or not text.isprintable() or not text.isascii():
            raise NoSecret(f"{self._name} is empty, too long, or has characters that no secret has", "write it anew")
        if len(text) < self._least:
            what = f"{self._name} has less than {self._least} characters"
            raise NoSecret(what, f"openssl rand -hex 32 > {self._path}")
        return text


def check_private(found: os.stat_result, path: Path, name: str) -> None:
    """Raises NoSecret where that is no file, or one that others than its owner may read. One that somebody else owns is
    read as a member of its group, as what a cluster mounts for a process: that has to be so, and nobody beyond."""
    if not stat.S_ISREG(found.st_mode):
        raise NoSecret(f"{name} is no file", f"write a file to {path}")
    mine = found.st_uid == os.geteuid() or os.geteuid() == 0
    if found.st_mode & (_GROUP_AND_OTHERS if mine else stat.S_IRWXO):
        raise NoSecret(f"{name} may be read by others than its owner", f"chmod {'600' if mine else 'o='} {path}")
