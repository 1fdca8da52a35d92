"""When the status branch is written: pure arithmetic on times that the caller gives.

What nobody could find out again goes at once. A status can be observed again, so it waits for a window to end, and
everything that comes meanwhile goes with it. Windows grow while statuses keep coming:

    quiet = 0.25, longest = 30, a status every second from 0 on:
    0 → written at 0.25    1 → at 1.5    2 → at 3    3, 4 → at 5    5 to 8 → at 9    … then every 30 seconds
    nothing for 30 seconds, or something that cannot wait: the next window is 0.25 again
"""

from __future__ import annotations

import math


class Schedule:
    """`quiet`: seconds of the first window; `longest`: of the last, and how long it has to be quiet for a new
    beginning. Times are seconds of one clock that never goes back."""

    def __init__(self, quiet: float = 0.25, longest: float = 30.0) -> None:
        self._quiet = quiet
        self._longest = longest
        self._window = 0.0
        self._last = -math.inf  # when a status came last
        self._due = math.inf

    @property
    def due(self) -> float:
        """When to write; infinity where nothing waits."""
        return self._due

    def status(self, now: float) -> None:
        """A status came."""
        if self._due == math.inf:
            again = now - self._last <= self._longest
            self._window = min(max(2 * self._window, self._quiet), self._longest) if again else self._quiet
            self._due = now + self._window
        self._last = now

    def urgent(self, now: float) -> None:
        """Something came that cannot wait. Statuses that follow from it are not held up by those before."""
        self._due = min(self._due, now)
        self._window = 0.0

    def wrote(self) -> None:
        """All that came is recorded."""
        self._due = math.inf
