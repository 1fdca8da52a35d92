"""What was found out before is bounded by the memory that it takes, and what is asked for stays."""

from __future__ import annotations

from collections import OrderedDict

from hypothesis import given
from hypothesis import strategies as st

from apiserver.model.remembered import Remembered

MOST = 100
STEPS = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 120) | st.none()))


@given(STEPS)
def test_it_is_the_newest_and_most_asked_for_that_stay_within_the_bound(steps: list[tuple[int, int | None]]) -> None:
    """A step puts something of a size, or asks (None). Held against all that was ever put, in the order of its use."""
    kept: Remembered[int, int] = Remembered(MOST)
    used: OrderedDict[int, tuple[int, int]] = OrderedDict()
    for number, (key, size) in enumerate(steps):
        if size is not None:
            kept.put(key, number, size)
            used.pop(key, None)
            used[key] = number, size
            while sum(each for _, each in used.values()) > MOST:
                used.popitem(last=False)
        else:
            assert kept.get(key) == used.get(key, (None, 0))[0]
            if key in used:
                used.move_to_end(key)
        assert kept.size == sum(each for _, each in used.values()) <= MOST
