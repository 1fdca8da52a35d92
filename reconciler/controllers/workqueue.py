"""Keys that wait for a controller: each once, with back-off and appointments.

Used by managers (manager.py). Plain threads, one process; knows nothing of what a key means.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

from apiserver.metrics import queues

K = TypeVar("K", bound=Hashable)


class WorkQueue(Generic[K]):
    """Keys to look at, each at most once at a time and at most once waiting.

    A key added while it is being worked on is handed out again after `done`. `retry` waits 50 ms, 100 ms, … up to
    `longest` seconds; `forget` (after a success) starts over.
    """

    def __init__(self, longest: float = 60.0, name: str = "") -> None:
        """`name`: in metrics; "": it is not told of there."""
        self._ready: deque[K] = deque()
        self._waiting: set[K] = set()
        self._working: set[K] = set()
        self._later: list[tuple[float, int, K]] = []
        self._due: dict[K, float] = {}
        self._failures: dict[K, int] = {}
        self._sequence = 0
        self._longest = longest
        self._name = name
        self._closed = False
        self._condition = threading.Condition()

    def __len__(self) -> int:
        """Keys that wait or are being worked on; those of `add_after` not counted."""
        with self._condition:
            both = sum(key in self._waiting for key in self._working)  # those at work are few
            return len(self._waiting) + len(self._working) - both

    def pending(self) -> set[K]:
        """Those that wait, are at work or come later."""
        with self._condition:
            return self._waiting | self._working | self._due.keys()

    def add(self, key: K) -> None:
        with self._condition:
            self._add(key)

    def _add(self, key: K) -> None:
        if key in self._waiting or self._closed:
            return
        self._waiting.add(key)
        if self._name:
            queues.ADDS.add(self._name)
            queues.DEPTH.move(1, self._name)
        if key not in self._working:
            self._ready.append(key)
            self._condition.notify()

    def add_after(self, key: K, seconds: float) -> None:
        """Add the key later; an earlier appointment stands, a later one is replaced."""
        with self._condition:
            at = time.monotonic() + seconds
            if self._closed or self._due.get(key, at + 1) <= at:
                return
            self._due[key] = at
            self._sequence += 1
            heapq.heappush(self._later, (at, self._sequence, key))
            self._condition.notify()

    def get(self, timeout: float | None = None) -> K | None:
        """The next key, or None after `timeout` seconds or when closed. Call `done` for it."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._condition:
            while not self._closed:
                now = time.monotonic()
                self._promote(now)
                if self._ready:
                    key = self._ready.popleft()
                    self._waiting.discard(key)
                    self._working.add(key)
                    if self._name:
                        queues.DEPTH.move(-1, self._name)
                    return key
                if deadline is not None and now >= deadline:
                    return None
                until = [t for t in (deadline, self._later[0][0] if self._later else None) if t is not None]
                self._condition.wait(max(0.0, min(until) - now) if until else None)
            return None

    def _promote(self, now: float) -> None:
        while self._later and self._later[0][0] <= now:
            at, _, key = heapq.heappop(self._later)
            if self._due.get(key) == at:
                del self._due[key]
                self._add(key)

    def done(self, key: K) -> None:
        with self._condition:
            self._working.discard(key)
            if key in self._waiting:
                self._ready.append(key)
                self._condition.notify()

    def retry(self, key: K) -> None:
        """Hand the key out again after a wait that doubles with every failure."""
        with self._condition:
            count = self._failures.get(key, 0)
            self._failures[key] = count + 1
        if self._name:
            queues.RETRIES.add(self._name)
        self.add_after(key, min(self._longest, 0.05 * 2 ** min(count, 20)))

    def forget(self, key: K) -> None:
        with self._condition:
            self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        with self._condition:
            return self._failures.get(key, 0)

    def close(self) -> None:
        with self._condition:
            if self._name and not self._closed:
                queues.DEPTH.move(-len(self._waiting), self._name)
            self._closed = True
            self._condition.notify_all()
