"""A user as JSON, and back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.auth.user import User

TEXTS = st.lists(st.text(max_size=9), max_size=3).map(tuple)
USERS = st.builds(User, st.text(), TEXTS, st.text(max_size=9), st.dictionaries(st.text(max_size=9), TEXTS, max_size=3))
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda some: st.lists(some, max_size=3) | st.dictionaries(st.sampled_from(["username", "groups", "extra"]), some),
)


@given(USERS)
def test_what_is_said_of_a_user_is_the_user(user: User) -> None:
    assert User.from_json(user.as_json()) == user


@pytest.mark.parametrize(
    "found",
    [None, [], "alice", {}, {"username": 1}, {"username": "a", "groups": "b"}, {"username": "a", "groups": [1]},
     {"username": "a", "uid": None}, {"username": "a", "extra": []}, {"username": "a", "extra": {"b": "c"}}],
)  # fmt: skip
def test_what_is_none_is_said_to_be_none(found: Any) -> None:
    with pytest.raises(ValueError, match=r"text|object"):
        User.from_json(found)


@given(ANYTHING)
def test_whatever_it_is(found: Any) -> None:
    try:
        made = User.from_json(found)
    except ValueError:
        return
    assert made.name == found["username"]
