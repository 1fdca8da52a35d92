"""How long the past is kept, where somebody asked for a bound: what lists of a moment and watches resume from.

One controller. A store bounds its log by size; a bound by time is for those who want old states gone. As in
kube-apiserver an interval is what is kept at least, two of them at most.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from apiserver.model.keys import Key
from apiserver.storage.protocol import Store
from reconciler.controllers.controller import Controller

_TICK = Key("~tick", "", "", "")


class History(Controller[Key]):
    """`seconds`: the interval. `now`: a clock that never goes back."""

    name = "history"

    def __init__(self, store: Store, seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._seconds = seconds
        self._now = now
        self._noted: int | None = None
        self._due = now()

    def begin(self) -> None:
        self.queue.add(_TICK)

    def reconcile(self, key: Key) -> None:
        """Forgets what is older than the revision noted an interval ago, and notes the newest."""
        now = self._now()
        if now >= self._due:
            reached = self._store.revision()
            if self._noted is not None:
                self._store.compact(reached - self._noted)  # at most as many entries as revisions since then
            self._noted, self._due = reached, now + self._seconds
        self.queue.add_after(key, self._due - now)
