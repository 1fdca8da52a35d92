"""What the reconciler's process writes down of its looks at the fleet's repository (apiserver/registry/looks): that it
does not answer, that a head waits to be served, and what a look found that somebody asked for.

Kept by the lookout. Told by whoever looks, from every thread; as long as nothing is wrong and nobody asks, nothing is
written.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

from apiserver.registry import looks, tree
from apiserver.registry.looks import Away, Looked, WaitingHead
from apiserver.storage.protocol import DeleteRow, PutRow, Store

_LONG = 5.0
"""Seconds that a load takes before it is written down that its commit waits."""


class Looking:
    """`attach` to the store once it is open; what was met before is written then."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._store: Store | None = None
        self._away: Away | None = None
        self._waiting: WaitingHead | None = None
        """What the store says."""
        self._seen: WaitingHead | None = None
        """What is to be served."""
        self._asked, self._last = 0.0, 0.0
        """When somebody asked first, of those who have no answer, and last."""

    def attach(self, store: Store) -> None:
        with self._lock:
            self._store = store
            if self._away is not None or looks.away(store) is not None:
                self._write(looks.put_away(self._away))
            self._waiting = self._waiting or looks.waiting(store)

    # -- whether it answers

    def failed(self) -> None:
        """It did not, just now."""
        with self._lock:
            if self._away is None:
                self._away = Away(self._clock(), self._clock())
                self._write(looks.put_away(self._away))

    def answers(self) -> None:
        with self._lock:
            if self._away is not None:
                self._away = None
                self._write(looks.put_away(None))

    def planned(self, seconds: float) -> None:
        """When it is asked next."""
        with self._lock:
            if self._away is not None:
                self._away = replace(self._away, again=self._clock() + seconds)
                self._write(looks.put_away(self._away))

    # -- whether what was seen is served

    def seen(self, head: str) -> None:
        """It is to be served from now on."""
        with self._lock:
            before = self._waiting
            self._seen = before if before is not None and before.head == head else WaitingHead(head, self._clock())

    def waits(self, *, long: bool = False) -> None:
        """It is not served yet. `long`: it is being loaded, so that is worth a word only after a while."""
        with self._lock:
            found = self._seen
            if found is None or found == self._waiting or (long and self._clock() - found.since < _LONG):
                return
            self._waiting = found
            self._write(looks.put_waiting(found))

    def served(self) -> None:
        with self._lock:
            self._seen = None
            if self._waiting is not None:
                self._waiting = None
                self._write(looks.put_waiting(None))

    # -- who asked

    def ask(self) -> None:
        """Somebody wants to know what a look finds that begins now or later."""
        with self._lock:
            self._last = self._clock()
            self._asked = self._asked or self._last

    def is_asked(self, began: float) -> bool:
        """Whether somebody waits for a look that began then."""
        with self._lock:
            return 0.0 < self._asked <= began

    def answer(self, began: float, head: str, wrong: str) -> None:
        """`wrong`: why the head is not what is served, or why nobody could look; "" where all is well."""
        with self._lock:
            if self._store is None:
                return
            served = tree.fleet(self._store).commit.id
            self._write(looks.put_looked(Looked(began, head, served, wrong)))
            self._asked = self._last if self._last > began else 0.0

    def _write(self, op: PutRow | DeleteRow) -> None:
        """Nobody waits for it: what is told here is told again if it is lost."""
        if self._store is not None:
            self._store.write(op)
