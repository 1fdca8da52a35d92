"""What is promised to be there within some seconds, tried until it is so once: a machine may stand still."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

TRIES = 3


def promptly(seconds: float, change: Callable[[int], object], there: Callable[[int], object], what: str) -> int:
    """Make the changes 0, 1, 2, each once the one before `there` is seen by, until one is seen within that time of its
    end; which that was. A server that is slow of its own is so each time, and fails."""
    took = []
    for number in range(TRIES):
        change(number)
        begin = time.monotonic()
        there(number)
        took.append(time.monotonic() - begin)
        if took[-1] < seconds:
            return number
    pytest.fail(f"{what} within {seconds:g} s was not so in any of {TRIES} tries: {took}")
