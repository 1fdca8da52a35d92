"""How a large commit shares its thread with what comes meanwhile: half of the time at least is its own."""

from __future__ import annotations

import time
from collections.abc import Callable

_SHORTEST = 0.02
"""Seconds between two pauses in which something is done."""


class Pauses:
    """Of one loader. `now`: seconds of a clock that never goes back."""

    def __init__(self, now: Callable[[], float] = time.monotonic, shortest: float = _SHORTEST) -> None:
        self._now, self._shortest = now, shortest
        self._not_before = 0.0
        self._is_one = False

    def take(self, work: Callable[[], None]) -> None:
        """Has others work, unless they did for as long as the commit since then. One that comes in another is none."""
        began = self._now()
        if self._is_one or began < self._not_before:
            return
        self._is_one = True
        try:
            work()
        finally:
            self._is_one = False
            ended = self._now()
            self._not_before = ended + max(ended - began, self._shortest)
