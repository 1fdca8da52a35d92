"""How often something may be done in a minute. Called by proposals; forgets what is longer ago."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Mapping

_MINUTE = 60.0
_KNOWN = 10_000
"""Names beside which those of which nothing is left are dropped."""


class MinuteRate:
    """`now`: seconds, of a clock that only goes forward."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._times: dict[str, deque[float]] = {}

    def wait(self, rates: Mapping[str, int]) -> int:
        """Whole seconds until it may be done once more by all of these names, 0: now, and it counts as done. `rates`:
        how often each may in a minute."""
        now = self._now()
        if len(self._times) > _KNOWN:
            self._times = {name: times for name, times in self._times.items() if times[-1] > now - _MINUTE}
        waits = [self._until(name, rate, now) for name, rate in rates.items()]
        if any(waits):
            return math.ceil(max(waits))
        for name in rates:
            self._times.setdefault(name, deque()).append(now)
        return 0

    def _until(self, name: str, rate: int, now: float) -> float:
        times = self._times.get(name)
        while times and times[0] <= now - _MINUTE:
            times.popleft()
        if times is not None and not times:
            del self._times[name]
            return 0.0
        return times[0] + _MINUTE - now if times is not None and len(times) >= rate else 0.0
