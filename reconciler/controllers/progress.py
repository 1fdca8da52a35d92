"""How far a controller is: which keys entries of the log gave it that are not done yet. Its checkpoint follows.

Kept for each controller that has a version (agenda.py); asked by the feed. A checkpoint is a revision up to which every
entry has been worked off: it never passes an entry one of whose keys waits, is at work, is to be tried again or has an
appointment that stands in memory alone. What a key's work adds to the queue counts as of the entry that the key was
for: only that brings it back.

    told a (5), b (7); reached 9     → low() == 4
    a done, which added c            → c counts as of 5: still 4
    c done                           → 6
    b done                           → 9
"""

from __future__ import annotations

import threading
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

SHOWN = 0
"""The revision of what was shown: until that is done, there is no checkpoint."""


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """A key at work, for the entry of that revision (None: nothing in the log asked for it)."""

    key: Any
    revision: int | None = None


class Progress:
    """Safe from every thread."""

    def __init__(self) -> None:
        self._open: dict[Hashable, int] = {}
        self._working: set[Task] = set()
        self._lock = threading.Lock()

    def told(self, key: Hashable, revision: int | None) -> None:
        """The key is to be looked at; called before it is put into a queue."""
        if revision is not None:
            with self._lock:
                self._open[key] = min(revision, self._open.get(key, revision))

    def taken(self, key: Hashable) -> Task:
        """It comes out of the queue; `done` or `failed` follows."""
        with self._lock:
            task = Task(key, self._open.pop(key, None))
            if task.revision is not None:
                self._working.add(task)
            return task

    def done(self, task: Task) -> None:
        with self._lock:
            self._working.discard(task)

    def failed(self, task: Task) -> None:
        """It is to be looked at again."""
        self.told(task.key, task.revision)
        self.done(task)

    def low(self, reached: int) -> int:
        """The checkpoint, where every entry up to `reached` was told. Negative: there is none."""
        with self._lock:
            held = [*self._open.values(), *(task.revision for task in self._working if task.revision is not None)]
        return min(min(held) - 1, reached) if held else reached
