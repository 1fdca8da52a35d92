"""Who pushed, as JSON and in words."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.plan.pushedby import HOW, NAMED, NOBODY, OPERATOR, PUSH, SERVER, SEVERAL, SIGNATURE, PushedBy


@given(st.text(), st.sampled_from(["", *HOW]), st.text())
def test_what_is_written_is_read(user: str, how: str, key: str) -> None:
    by = PushedBy(user, how, key)
    assert PushedBy.from_json(by.as_json()) == by
    assert bool(by) == bool(how)


@given(st.lists(st.text(), min_size=1), st.text())
def test_what_the_server_made_is_of_one_or_of_several(users: list[str], key: str) -> None:
    by = PushedBy.server(users, key)
    assert PushedBy.from_json(by.as_json()) == by
    every = [*dict.fromkeys(users)]
    if len(every) == 1:
        assert by == PushedBy(every[0], SERVER, key)
    else:
        assert (by.user, by.how, by.key) == ("", SEVERAL, key)
        assert by.users == tuple(every[:NAMED])
        assert len(by.users) + by.more == len(every)


@pytest.mark.parametrize(
    "found",
    [None, [], "x", {"how": "guess"}, {"how": 1}, {"user": 1}, {"key": None}, {"users": "x"}, {"users": [1]},
     {"more": "1"}, {"more": True}, {"more": -1}],
)  # fmt: skip
def test_what_says_nothing_of_the_kind(found: Any) -> None:
    with pytest.raises(ValueError, match="not who pushed"):
        PushedBy.from_json(found)


def test_words() -> None:
    said = [str(PushedBy("alice", how)) for how in (PUSH, SIGNATURE, SERVER, OPERATOR)]
    assert said == ["alice", "alice (signed)", "alice (through the API)", "alice (who runs the server)"]
    assert str(NOBODY) == "nobody known"
    several = [str(PushedBy.server(users)) for users in (["ann", "bob"], ["ann", "bob", "eve"], "abcdefg")]
    assert several == [
        "treeplane for ann and bob",
        "treeplane for ann, bob and eve",
        "treeplane for a, b, c and 4 more",
    ]
    assert str(PushedBy("", SEVERAL)) == "treeplane for several users"
