"""A store whose file takes no more, as on a full disk: what LMDB writes to is the device that is always full."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def no_room(directory: Path, *, meta: bool = False) -> Iterator[None]:
    """For the store in `directory`, which this process has open, with syncing: as long as the block lasts. `meta`: for
    the page alone that a commit ends with, so that all before it is written."""
    [handle] = [each for each in _handles(directory / "data.mdb") if _is_synced(each) == meta]
    kept, full = os.dup(handle), os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, handle, inheritable=False)
    os.close(full)
    try:
        yield
    finally:
        os.dup2(kept, handle, inheritable=False)
        os.close(kept)


def _handles(file: Path) -> list[int]:
    found = []
    for each in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            if each.readlink() == file.resolve():
                found.append(int(each.name))
    return found


def _is_synced(handle: int) -> bool:
    """LMDB's second one, for the last page of a commit, is."""
    return bool(fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_DSYNC)
