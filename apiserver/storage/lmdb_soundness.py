"""Whether the files of an LMDB store can be trusted, and what is done with those that cannot: set aside.

Called when a store is opened (lmdb.py), before anything of it is believed. Everything in a store can be rebuilt, or is
what its owner may lose with a disk; so a store that cannot be read is no reason not to start, and is kept for whoever
wants to look.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from apiserver.storage.lmdb_library import DATA, NO_STORE, Files
from apiserver.storage.lmdb_probe import BROKEN

log = logging.getLogger(__name__)

T = TypeVar("T")

LOCK: Final = "lock.mdb"
ASIDE: Final = "data.mdb.damaged"
_PATIENCE: Final = 10.0
"""Seconds for other processes to let go of a store that is damaged."""
_PROBE_SECONDS: Final = 600.0
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")


class Damaged(Exception):
    """The text says what was found."""


class NewerStore(Exception):
    """A newer Treeplane wrote it: it is whole, and not this one's to change. The text says what to do."""


UNREADABLE: Final = (Damaged, *NO_STORE)
"""What opening a store raises where its files are no store, or not a whole one."""


class Hold:
    """On a store's directory, for as long as a process has it open: nobody sets aside what others use."""

    def __init__(self, directory: Path) -> None:
        self._fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self.share()

    def share(self) -> None:
        fcntl.flock(self._fd, fcntl.LOCK_SH)

    def alone(self) -> bool:
        """Whether nobody else has it open: then nobody will until `share`. If not, this process has no hold either."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def end(self) -> None:
        os.close(self._fd)


def mended(directory: Path, hold: Hold, opening: Callable[[], T]) -> T:
    """What `opening` returns. Where it raises one of UNREADABLE the files are set aside, once, by one of those who find
    that. Raises Damaged where others use them still after a while."""
    until = time.monotonic() + _PATIENCE
    while True:
        with contextlib.suppress(*UNREADABLE):
            return opening()
        if hold.alone():
            try:
                return opening()  # another process may have been here first
            except UNREADABLE as found:
                set_aside(directory, found)
                return opening()
            finally:
                hold.share()
        if time.monotonic() > until:
            raise Damaged(f"the store in {directory} is damaged and in use: end all processes that use it, start again")
        time.sleep(0.05)
        hold.share()


def set_aside(directory: Path, found: BaseException) -> None:
    """The next store begins empty; what a former one left aside goes."""
    (directory / DATA).replace(directory / ASIDE)
    (directory / LOCK).unlink(missing_ok=True)
    log.warning(
        "the store in %s cannot be used: %s. It is set aside as %s, and one is begun anew: what git and the status "
        "branch know is loaded again, what only the store knew is lost",
        directory,
        found,
        ASIDE,
    )


def boot() -> bytes:
    """What is another one after each start of the machine; empty where that cannot be told."""
    try:
        return _BOOT.read_bytes().strip()
    except OSError:
        return b""


def check_pages(directory: Path, env: Files) -> None:
    """Raises Damaged for a file that ends before its last page, where that matters: reading behind the end of a file
    that is mapped would end this process, so another one tries. Pages that nothing refers to may be missing."""
    last, size = env.info()["last_pgno"], env.stat()["psize"]
    there = (directory / DATA).stat().st_size
    if there >= (last + 1) * size:
        return
    probe = [sys.executable, "-m", "apiserver.storage.lmdb_probe", str(directory)]
    null = subprocess.DEVNULL
    done = subprocess.run(probe, check=False, stdout=null, stderr=null, timeout=_PROBE_SECONDS)
    if done.returncode < 0 or done.returncode == BROKEN:  # killed, by reading where there is nothing, or told so
        raise Damaged(f"{DATA} has {there} bytes, and pages that are in use lie behind them")
