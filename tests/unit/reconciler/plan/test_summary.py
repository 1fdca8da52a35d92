"""Summaries hold only what the head cannot tell, and read back as they were written."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.model.commits import NONE, CommitRef, own
from reconciler.plan.summary import Summary
from reconciler.statusbranch import format

A, B, C = own("a" * 40), own("b" * 40), CommitRef("charts", "c" * 40)

COMMITS = st.sampled_from([A, B, C])
SUMMARIES = st.builds(
    Summary,
    origin=COMMITS,
    commit=COMMITS,
    served=st.one_of(st.none(), st.just(NONE), COMMITS),
    held=st.sampled_from([NONE, A, B]),
    errors=st.lists(st.text(max_size=5), max_size=2),
    bindings=st.dictionaries(st.sampled_from(["widgets"]), st.just({"cluster": "c", "schemas": ["v1.widgets.x"]})),
    waiting=st.lists(st.sampled_from(["APIBinding/widgets", "CustomResourceDefinition/x"]), unique=True).map(sorted),
    type=st.sampled_from(["", "root:organization"]),
    brought=st.sampled_from([{}, {"writes": "Store", "bindings": ["root:compute:kubernetes"]}]),
    identities=st.dictionaries(st.sampled_from(["widgets", "gadgets"]), st.text(max_size=5)),
)


@given(SUMMARIES)
def test_round_trip(summary: Summary) -> None:
    found = Summary.from_json(orjson.loads(orjson.dumps(summary.as_json())))
    assert found == summary
    assert found.as_json() == summary.as_json()


@given(SUMMARIES)
def test_round_trip_through_the_status_branch(summary: Summary) -> None:
    assert Summary.from_json(format.load(format.dump(summary.as_json()))) == summary


def test_defaults_are_left_out() -> None:
    assert Summary(A, A).as_json() == {"origin": str(A)}


def test_what_differs_is_named() -> None:
    summary = Summary(A, B, served=C, errors=["x.yaml:1: wrong"], identities={"widgets": "9f86"})
    assert summary.as_json() == {
        "origin": str(A),
        "commit": str(B),
        "served": f"charts.{C.id}",
        "errors": ["x.yaml:1: wrong"],
        "identities": {"widgets": "9f86"},
    }


def test_a_workspace_that_was_never_good_says_so() -> None:
    assert Summary(A, served=NONE, errors=["wrong"]).as_json() == {"origin": str(A), "served": "", "errors": ["wrong"]}


@pytest.mark.parametrize("found", [{}, {"commit": str(A)}, {"origin": str(A), "errors": 1}, {"origin": "main"}])
def test_what_is_not_a_summary_raises(found: dict[str, object]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        Summary.from_json(found)
