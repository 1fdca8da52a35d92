"""The baton: one thread of a process has it at a time, of those that make many calls of the store's library in a row.

The library lets go of the interpreter in every call. Where two threads are at work with it, each call of one hands the
interpreter to the other and waits to get it back: a change of threads costs as much as several reads. So whoever works
for a while with the store, and waits for nothing else meanwhile, has the baton for that: the writer's thread
(lmdb_writer.py), a feed, the controllers of a manager, who looks at the log.

An order, no lock: nothing relies on it. Nobody waits longer than PATIENCE, then he goes on, and whoever kept the baton
so long has lost it. Whoever waits for a write (`StoreAnswer`) has given it away.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from concurrent.futures import Future
from typing import Final

SLICE: Final = 0.005
"""Seconds for which a thread has it, after which the one who waits longest does: what the interpreter gives a thread,
too."""
PATIENCE: Final = 0.05
"""Seconds after which one goes on without: whoever has it waits for something, against what is said above."""


class Baton:
    """`take` it, over and over as long as there is something to do, and `give` it before anything is waited for. Or
    `with baton:` around what takes a few milliseconds."""

    def __init__(self, length: float = SLICE, patience: float = PATIENCE) -> None:
        self._length, self._patience = length, patience
        self._lock = threading.Lock()
        self._waiting: deque[tuple[int, threading.Lock]] = deque()
        self._whose = 0
        """The thread's identifier, which is never 0; 0: nobody's."""
        self._until = 0.0

    @property
    def is_mine(self) -> bool:
        return self._whose == threading.get_ident()

    def take(self) -> None:
        """Returns when this thread has it, or patience is at an end. Whoever has it keeps it until its time is over and
        somebody waits."""
        if self.is_mine:
            if not self._waiting or time.monotonic() < self._until:
                return
            self.give()
        me, mine = threading.get_ident(), threading.Lock()
        with self._lock:
            if not self._whose:
                self._begins(me)
                return
            mine.acquire()
            self._waiting.append((me, mine))
        if mine.acquire(timeout=self._patience):
            return
        with self._lock:
            if self._whose == me:  # it was given in this moment
                return
            self._waiting.remove((me, mine))
            if time.monotonic() >= self._until:
                self._begins(me)  # a thread that ended with it would keep it for ever

    def give(self) -> None:
        """Gives it to the one who waits longest, where this thread has it."""
        if not self.is_mine:
            return
        with self._lock:
            self._whose = 0
            if self._waiting:
                whose, waits = self._waiting.popleft()
                self._begins(whose)
                waits.release()

    def __enter__(self) -> None:
        self.take()

    def __exit__(self, *_: object) -> None:
        self.give()

    def _begins(self, whose: int) -> None:
        self._whose, self._until = whose, time.monotonic() + self._length


BATON: Final = Baton()
"""That of this process, whichever of its stores is at work: there is one interpreter."""


class StoreAnswer(Future[list[int]]):
    """The answer to a write: whoever waits for it does so without the baton."""

    def result(self, timeout: float | None = None) -> list[int]:
        BATON.give()
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        BATON.give()
        return super().exception(timeout)
