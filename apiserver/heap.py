"""The memory of a server's process: the heap of its threads, and how often garbage is looked for.

Called by the processes' beginnings (`__main__`, reconciler/commands/reconcile).
"""

from __future__ import annotations

import ctypes
import gc

_THRESHOLDS = (50_000, 20, 20)
"""Ten thousand objects of a list or a commit are no sign of garbage: with Python's own 700 the list's answer costs half
as much again."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""Of mallopt(3)."""
_LARGE = 1 << 20


def share() -> None:
    """All threads take memory from one heap, and what is large goes back to the system with its last user. Call before
    the first thread starts.

    glibc gives each new thread a heap of its own while there are fewer than eight for each core. Memory that one thread
    gave back is then of no use to the others, and each heap stays as large as it once had to be: a server's threads
    wait most of their time, but each has judged or pushed something big once. And once a large block was freed, glibc
    takes all up to that size from the heap, where what is small and stays keeps it from shrinking. Where there is
    another C library nothing is done.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_ARENA_MAX, 1)
        mallopt(_MMAP_THRESHOLD, _LARGE)
        mallopt(_TRIM_THRESHOLD, _LARGE)


def settle() -> None:
    """What is there now stays, so it need not be looked at again; and look more rarely."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
