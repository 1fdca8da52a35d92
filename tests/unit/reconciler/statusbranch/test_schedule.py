"""When the status branch is written, without a clock."""

from __future__ import annotations

import itertools
import math

from hypothesis import given
from hypothesis import strategies as st

from reconciler.statusbranch.schedule import Schedule

Events = list[tuple[float, bool]]


def written(events: Events, schedule: Schedule | None = None) -> list[float]:
    """When a writer that takes no time writes. `events`: (time, urgent)."""
    schedule, out = schedule or Schedule(), list[float]()
    for at, urgent in [*events, (math.inf, False)]:
        while schedule.due <= at and schedule.due < math.inf:
            out.append(schedule.due)
            schedule.wrote()
        if urgent:
            schedule.urgent(at)
        elif at < math.inf:
            schedule.status(at)
    return out


def test_a_status_waits_a_quarter_of_a_second() -> None:
    assert written([(10, False), (10.1, False)]) == [10.25]


def test_what_cannot_wait_goes_at_once_and_takes_the_rest_along() -> None:
    assert written([(10, False), (10.1, True)]) == [10.1]


def test_windows_double_up_to_thirty_seconds() -> None:
    found = written([(float(n), False) for n in range(200)])
    assert found[:8] == [0.25, 1.5, 3.0, 5.0, 9.0, 17.0, 33.0, 63.0]
    assert {later - earlier for earlier, later in itertools.pairwise(found[7:])} == {30.0}


def test_after_thirty_quiet_seconds_it_begins_anew() -> None:
    busy = [(float(n), False) for n in range(100)]
    assert written([*busy, (200, False)])[-1] == 200.25
    assert written([*busy, (125, False)])[-1] == 155


def test_what_follows_from_something_urgent_is_not_held_up() -> None:
    busy = [(float(n), False) for n in range(100)]
    assert written([*busy, (100.5, True), (101, False)])[-2:] == [100.5, 101.25]


@given(st.lists(st.tuples(st.floats(0, 2000), st.booleans() | st.just(False)), max_size=80))
def test_nothing_waits_long_and_little_is_written(found: Events) -> None:
    events = sorted(found)
    writes = written(events)
    for at, urgent in events:
        following = min(w for w in writes if w >= at)
        assert following - at <= (0 if urgent else 30.0)
    urgent = sum(each for _, each in events)
    # Each beginning has at most eight windows shorter than the longest; a beginning is an urgent one, or 30 quiet
    # seconds, which cost one.
    assert len(writes) <= 9 * (urgent + 1) + 2 * 2000 / 30
