"""Git as one field owner among others: what it names wins, what it never named stays, what it dropped goes."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.plan.merge import merged, same_content

Object = dict[str, Any]
Path = tuple[str, ...]

CASES: dict[str, tuple[Object | None, Object, Object, Object]] = {
    "nothing was there": (None, {"a": 1}, {}, {"a": 1}),
    "the module's example": ({"a": 1, "b": 2}, {"a": 3}, {"a": 1, "b": 2, "c": 9}, {"a": 3, "c": 9}),
    "git takes back what another changed": ({"a": 1}, {"a": 1}, {"a": 7}, {"a": 1}),
    "git takes over what another set": (None, {"a": 1}, {"a": 7, "b": 2}, {"a": 1, "b": 2}),
    "others' labels stay": (
        {"labels": {"git": "1", "old": "1"}},
        {"labels": {"git": "2"}},
        {"labels": {"git": "1", "old": "1", "other": "x"}},
        {"labels": {"git": "2", "other": "x"}},
    ),
    "a map that git drops keeps what others put into it": (
        {"labels": {"git": "1"}},
        {},
        {"labels": {"git": "1", "other": "x"}},
        {"labels": {"other": "x"}},
    ),
    "a map that git drops goes when nothing else is in it": (
        {"labels": {"git": "1"}},
        {},
        {"labels": {"git": "1"}},
        {},
    ),
    "a deep map goes with its only leaf": ({"a": {"b": {"c": 1}}}, {}, {"a": {"b": {"c": 1}}, "d": 1}, {"d": 1}),
    "lists are replaced": ({"l": [1, 2]}, {"l": [3]}, {"l": [1, 2, 9]}, {"l": [3]}),
    "a list that git drops goes": ({"l": [1, 2]}, {}, {"l": [1, 2, 9]}, {}),
    "a scalar becomes a map": ({"a": 1}, {"a": {"b": 1}}, {"a": 1}, {"a": {"b": 1}}),
    "a map becomes a scalar": ({"a": {"b": 1}}, {"a": 1}, {"a": {"b": 1, "c": 2}}, {"a": 1}),
    "what is gone already stays gone": ({"a": 1, "b": 1}, {"a": 1}, {"a": 1}, {"a": 1}),
    "null is a value": ({"a": 1}, {"a": None}, {"a": 1}, {"a": None}),
    "status is never git's": (
        {"a": 1, "status": {"old": 1}},
        {"a": 2, "status": {"new": 1}},
        {"a": 1, "status": {"seen": 1}},
        {"a": 2, "status": {"seen": 1}},
    ),
    "git does not make a status": (None, {"a": 1, "status": {"new": 1}}, {}, {"a": 1}),
    "a field named status below is like any other": (None, {"a": {"status": 1}}, {}, {"a": {"status": 1}}),
}


@pytest.mark.parametrize(("old", "new", "stored", "expected"), CASES.values(), ids=CASES.keys())
def test_merge(old: Object | None, new: Object, stored: Object, expected: Object) -> None:
    assert merged(old, new, stored) == expected


SCALARS = st.one_of(st.integers(0, 2), st.none(), st.lists(st.integers(0, 1), max_size=2))
OBJECTS = st.recursive(
    st.dictionaries(st.sampled_from("abc"), SCALARS, max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("abc"), st.one_of(SCALARS, inner), max_size=3),
    max_leaves=8,
)


@given(st.one_of(st.none(), OBJECTS), OBJECTS, OBJECTS)
def test_twice_is_once(old: Object | None, new: Object, stored: Object) -> None:
    once = merged(old, new, stored)
    assert merged(old, new, once) == once
    assert merged(new, new, once) == once


@given(st.one_of(st.none(), OBJECTS), OBJECTS, OBJECTS)
def test_inputs_are_not_changed(old: Object | None, new: Object, stored: Object) -> None:
    before = copy.deepcopy((old, new, stored))
    merged(old, new, stored)
    assert (old, new, stored) == before


@given(OBJECTS, OBJECTS, OBJECTS)
def test_what_git_names_wins(old: Object, new: Object, stored: Object) -> None:
    result = merged(old, new, stored)
    for path, value in leaves(new):
        if value == {}:
            assert isinstance(at(result, path), dict)
        else:
            assert at(result, path) == value


@given(OBJECTS, OBJECTS, OBJECTS)
def test_what_git_never_named_stays(old: Object, new: Object, stored: Object) -> None:
    result = merged(old, new, stored)
    for path, value in leaves(stored):
        if value != {} and not named(old, path) and not named(new, path):
            assert at(result, path) == value


@given(OBJECTS, OBJECTS, OBJECTS)
def test_what_git_dropped_goes(old: Object, new: Object, stored: Object) -> None:
    result = merged(old, new, stored)
    for path, value in leaves(old):
        if value != {} and not named(new, path):
            assert at(result, path) is MISSING


@given(OBJECTS, OBJECTS)
def test_alone_git_gets_what_it_says(old: Object, new: Object) -> None:
    assert without_empty(merged(old, new, old)) == without_empty(new)


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({}, True),
        ({"status": {"ready": True}}, True),
        ({"metadata": {"labels": {"a": "b"}}}, True),
        ({"spec": {"replicas": 2}}, False),
        ({"data": {}}, False),
    ],
)
def test_same_content_is_neither_status_nor_metadata(change: Object, same: bool) -> None:
    obj = {"kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 1}}
    assert same_content(obj, {**obj, **change}) is same


MISSING = object()


def leaves(obj: Object, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Paths of everything that is not a map, or an empty one."""
    for key, value in obj.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key), value


def at(obj: Any, path: Path) -> Any:
    for key in path:
        if not isinstance(obj, dict) or key not in obj:
            return MISSING
        obj = obj[key]
    return obj


def named(obj: Any, path: Path) -> bool:
    """Whether the path itself or something above it that is not a map stands in `obj`."""
    for key in path:
        if not isinstance(obj, dict):
            return True
        if key not in obj:
            return False
        obj = obj[key]
    return True


def without_empty(obj: Any) -> Any:
    """Maps that hold nothing count as absent."""
    if not isinstance(obj, dict):
        return obj
    kept = {key: without_empty(value) for key, value in obj.items()}
    return {key: value for key, value in kept.items() if value != {}}
