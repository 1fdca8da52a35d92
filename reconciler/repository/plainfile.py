"""Reads a file where others may put anything: what leads elsewhere, never ends, or is too long is not read.

Called for what git's hooks leave in the repository that the server hosts.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path


def read_plain(file: Path, most: int) -> str:
    """ "" of what is no plain file, cannot be read, or has more than `most` bytes."""
    with contextlib.suppress(OSError):
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as opened:
            if stat.S_ISREG(os.fstat(handle).st_mode):
                found = opened.read(most + 1)
                return found.decode(errors="replace") if len(found) <= most else ""
    return ""
