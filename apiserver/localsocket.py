"""Where the processes of one server find each other's sockets: in the data directory, however long its path is.

Called by push and endpoints/commitviews, and on the other side by the reconciler.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

COMMITS = "commits.sock"
"""Where workspaces as commits have them are asked for (endpoints/commitasking)."""


@contextlib.contextmanager
def address(directory: Path, name: str) -> Iterator[str]:
    """The address of the socket `name` in a directory, for binding and connecting. Socket paths end at 108 bytes, so
    it is reached through the open directory. Raises OSError."""
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{opened}/{name}"
    finally:
        os.close(opened)
