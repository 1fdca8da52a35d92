"""Summaries hold only what the head cannot tell, and read back as they were written."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.model.keys import Key
from reconciler.plan.summary import Entry, Summary, entry_name
from reconciler.statusbranch import format

A, B, C = "a" * 40, "b" * 40, "c" * 40

COMMITS = st.sampled_from([A, B, C])
ENTRIES = st.builds(
    Entry,
    COMMITS,
    COMMITS,
    st.integers(1, 3),
    uid=st.sampled_from(["", "6f0f2f0e"]),
    created=st.sampled_from(["", "2026-01-01T00:00:00Z"]),
)
SUMMARIES = st.builds(
    Summary,
    origin=COMMITS,
    commit=COMMITS,
    served=st.one_of(st.none(), st.just(""), COMMITS),
    held=st.sampled_from(["", A, B]),
    errors=st.lists(st.text(max_size=5), max_size=2),
    bound=st.dictionaries(st.sampled_from(["root:a:widgets"]), st.just({"cluster": "c", "schemas": ["v1.widgets.x"]})),
    objects=st.dictionaries(st.sampled_from(["configmaps/default/a", "namespaces//b"]), ENTRIES),
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
    summary = Summary(A, A)
    summary.set("configmaps/default/a", Entry(A, A))
    assert summary.as_json() == {"origin": A}


def test_what_differs_is_named() -> None:
    summary = Summary(A, B, served=C, errors=["x.yaml:1: wrong"], identities={"widgets": "9f86"})
    summary.set("configmaps/default/changed", Entry(A, B))
    summary.set("configmaps/default/later", Entry(B, B))
    summary.set("deployments.apps/default/web", Entry(A, A, 3))
    summary.set("secrets/default/adopted", Entry(B, C, 1, "6f0f2f0e"))
    assert summary.as_json() == {
        "origin": A,
        "commit": B,
        "served": C,
        "errors": ["x.yaml:1: wrong"],
        "objects": {
            "configmaps/default/changed": {"commit": B},
            "configmaps/default/later": {"origin": B},
            "deployments.apps/default/web": {"generation": 3},
            "secrets/default/adopted": {"origin": B, "commit": C, "uid": "6f0f2f0e"},
        },
        "identities": {"widgets": "9f86"},
    }


def test_a_workspace_that_was_never_good_says_so() -> None:
    assert Summary(A, served="", errors=["wrong"]).as_json() == {"origin": A, "served": "", "errors": ["wrong"]}


def test_an_entry_that_returns_to_the_defaults_is_dropped() -> None:
    summary = Summary(A)
    summary.set("configmaps/default/a", Entry(A, B))
    summary.set("configmaps/default/a", Entry(A, A))
    assert summary.objects == {}
    assert summary.entry("configmaps/default/a") == Entry(A, A)


def test_forgetting_what_was_never_known_is_nothing() -> None:
    summary = Summary(A)
    summary.forget("configmaps/default/a")
    assert summary.as_json() == {"origin": A}


def test_workspaces_of_one_commit_share_their_bytes() -> None:
    one, other = Summary(A, A), Summary(A, A)
    for name in ("b", "a"):
        one.set(f"configmaps/default/{name}", Entry(B, C))
    for name in ("a", "b"):
        other.set(f"configmaps/default/{name}", Entry(B, C))
    assert format.dump(one.as_json()) == format.dump(other.as_json())
    assert orjson.dumps(one.as_json()) == orjson.dumps(other.as_json())


@pytest.mark.parametrize(
    ("key", "name"),
    [
        (Key("deployments.apps", "abc", "default", "web"), "deployments.apps/default/web"),
        (Key("widgets.example.io:9f86", "abc", "", "w"), "widgets.example.io//w"),
    ],
)
def test_names_of_entries(key: Key, name: str) -> None:
    assert entry_name(key) == name


@pytest.mark.parametrize("found", [{}, {"objects": {}}, {"origin": A, "objects": {"x": None}}])
def test_what_is_not_a_summary_raises(found: dict[str, object]) -> None:
    with pytest.raises((KeyError, TypeError, AttributeError)):
        Summary.from_json(found)
