"""How often something may be done in a minute."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reconciler.loading.minuterate import MinuteRate


def test_who_did_too_much_waits_until_the_first_is_a_minute_ago() -> None:
    now = [0.0]
    rate = MinuteRate(lambda: now[0])
    assert [rate.wait({"ann": 2}), rate.wait({"ann": 2})] == [0, 0]
    now[0] = 10.5
    assert rate.wait({"ann": 2}) == 50
    assert rate.wait({"bob": 2}) == 0
    now[0] = 60.0
    assert rate.wait({"ann": 2}) == 0


def test_what_one_of_two_names_may_not_counts_for_neither() -> None:
    rate = MinuteRate(lambda: 0.0)
    assert rate.wait({"ann": 1, "shop": 2}) == 0
    assert rate.wait({"ann": 1, "shop": 2}) == 60
    assert rate.wait({"bob": 1, "shop": 2}) == 0
    assert rate.wait({"eve": 1, "shop": 2}) == 60


@given(st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 40)), max_size=60), st.integers(1, 5))
def test_in_no_minute_there_are_more(asked: list[tuple[str, float]], most: int) -> None:
    now, done = 0.0, []
    rate = MinuteRate(lambda: now)
    for name, later in asked:
        now += later
        if not rate.wait({name: most}):
            done.append((name, now))
    for name, when in done:
        assert sum(other == name and when - 60 < at <= when for other, at in done) <= most
