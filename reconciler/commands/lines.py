"""Which of the things that happen `up` prints: a line for each, of one sort at most one a second, and the rest as a
count.

Called by up, for what both of its processes report. Pure but for what it remembers. Each sort by itself, so that who is
held is not lost behind what happened at the same time.
"""

from __future__ import annotations

from collections import Counter

EVERY = 1.0
"""Seconds between two lines of one sort."""
_HELD_BACK = 3.0
"""Seconds after which what was not printed is counted."""


class HappenedLines:
    """`now`: seconds that never go back."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}
        self._since = 0.0
        self._more: Counter[str] = Counter()

    def line(self, sort: str, text: str, now: float) -> str:
        """The text, or "" where it is counted instead."""
        if sort in self._more or now - self._last.get(sort, float("-inf")) < EVERY:
            if not self._more:
                self._since = now
            self._more[sort] += 1
            return ""
        self._last[sort] = now
        return text

    def due(self, now: float) -> str:
        """What was counted for a while, in a line; "" for nothing, or not yet."""
        if not self._more or now - self._since < _HELD_BACK:
            return ""
        counted = ", ".join(f"{count} {sort}" for sort, count in sorted(self._more.items()))
        self._last.update(dict.fromkeys(self._more, now))
        self._more = Counter()
        return f"and besides: {counted} (kubectl get events -A says which)"
