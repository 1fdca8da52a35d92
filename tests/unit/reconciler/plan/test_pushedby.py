"""Who pushed, as JSON and in words."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.plan.pushedby import HOW, NOBODY, OPERATOR, PUSH, SERVER, SIGNATURE, PushedBy


@given(st.text(), st.sampled_from(["", *HOW]), st.text())
def test_what_is_written_is_read(user: str, how: str, key: str) -> None:
    by = PushedBy(user, how, key)
    assert PushedBy.from_json(by.as_json()) == by
    assert bool(by) == bool(how)


@pytest.mark.parametrize("found", [None, [], "x", {"how": "guess"}, {"how": 1}, {"user": 1}, {"key": None}])
def test_what_says_nothing_of_the_kind(found: Any) -> None:
    with pytest.raises(ValueError, match="not who pushed"):
        PushedBy.from_json(found)


def test_words() -> None:
    said = [str(PushedBy("alice", how)) for how in (PUSH, SIGNATURE, SERVER, OPERATOR)]
    assert said == ["alice", "alice (signed)", "alice (through the API)", "alice (who runs the server)"]
    assert str(NOBODY) == "nobody known"
