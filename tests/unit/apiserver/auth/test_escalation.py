"""What of a rule somebody does not hold, and how that is said."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.auth.escalation import missing
from apiserver.auth.rules import Rule
from apiserver.auth.user import Attributes


def rule(verbs: str, groups: str = "", resources: str = "pods", names: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {"verbs": verbs.split(), "apiGroups": groups.split(","), "resources": resources.split()}
    return {**found, "resourceNames": names.split()} if names else found


def urls(*paths: str) -> dict[str, Any]:
    return {"verbs": ["get"], "nonResourceURLs": list(paths)}


@pytest.mark.parametrize(
    ("held", "wanted", "lacking"),
    [
        (rule("get list"), rule("get"), 0),
        (rule("get"), rule("get list"), 1),
        (rule("*", "*", "*"), rule("get delete", "apps", "deployments pods/log"), 0),
        (rule("get", resources="*/scale"), rule("get", resources="pods/scale"), 0),
        (rule("get", resources="*/scale"), rule("get", resources="pods"), 1),
        (rule("get", resources="pods"), rule("get", resources="pods/log"), 1),
        (rule("get", resources="pods"), rule("get", resources="*"), 1),
        (rule("get", names="a"), rule("get", names="a"), 0),
        (rule("get", names="a"), rule("get"), 1),
        (rule("get"), rule("get", names="a b"), 0),
        (urls("/a/*"), urls("/a/b", "/a/*"), 0),
        (urls("/a/b"), urls("/a/*"), 1),
        (urls("*"), urls("/a", "/b/*"), 0),
        (rule("*", "*", "*"), urls("/a"), 1),
    ],
)
def test_what_is_lacking(held: Any, wanted: Any, lacking: int) -> None:
    assert len(missing([Rule.of(held)], [wanted])) == lacking


_WORDS = st.lists(st.sampled_from(["*", "a", "b"]), min_size=1, max_size=2, unique=True)
_RULES = st.builds(
    lambda v, g, r, n: {"verbs": v, "apiGroups": g, "resources": r, "resourceNames": n},
    _WORDS, _WORDS, _WORDS, st.lists(st.sampled_from(["x", "y"]), max_size=1),
)  # fmt: skip
_ASKED = st.builds(
    lambda v, g, r, n: Attributes(v, g, resource=r, name=n),
    st.sampled_from("ab"), st.sampled_from("ab"), st.sampled_from("ab"), st.sampled_from(["x", "y", ""]),
)  # fmt: skip


@given(st.lists(_RULES, max_size=3), _RULES, _ASKED)
def test_what_is_not_lacking_allows_nothing_new(held: Any, wanted: Any, asked: Attributes) -> None:
    rules = [Rule.of(r) for r in held]
    if not missing(rules, [wanted]) and Rule.of(wanted).covers(asked):
        assert any(r.covers(asked) for r in rules)


@given(_RULES)
def test_everyone_may_hand_on_what_they_hold(held: Any) -> None:
    assert missing([Rule.of(held)], [held]) == []
