from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.schema.patches import json_patch, merge_patch

# The table of RFC 7386, appendix A.
MERGES: list[tuple[Any, Any, Any]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("target", "patch", "expected"), MERGES)
def test_merge_patch(target: Any, patch: Any, expected: Any) -> None:
    before = copy.deepcopy((target, patch))
    assert merge_patch(target, patch) == expected
    assert (target, patch) == before


def test_merged_values_alias_neither_patch_nor_target() -> None:
    target, patch = {"kept": {"b": [1]}}, {"a": {"b": [1]}}
    merged = merge_patch(target, patch)
    merged["a"]["b"].append(2)
    merged["kept"]["b"].append(2)
    assert (target, patch) == ({"kept": {"b": [1]}}, {"a": {"b": [1]}})


STEPS: list[tuple[Any, list[dict[str, Any]], Any]] = [
    ({"a": 1}, [{"op": "add", "path": "/b", "value": 2}], {"a": 1, "b": 2}),
    ({"a": [1, 3]}, [{"op": "add", "path": "/a/1", "value": 2}], {"a": [1, 2, 3]}),
    ({"a": [1]}, [{"op": "add", "path": "/a/-", "value": 2}], {"a": [1, 2]}),
    ({"a": 1}, [{"op": "add", "path": "", "value": {"b": 2}}], {"b": 2}),
    ({"a": 1, "b": 2}, [{"op": "remove", "path": "/a"}], {"b": 2}),
    ({"a": [1, 2]}, [{"op": "remove", "path": "/a/0"}], {"a": [2]}),
    ({"a": [1, 2]}, [{"op": "replace", "path": "/a/0", "value": 9}], {"a": [9, 2]}),
    ({"a": {"b": 1}}, [{"op": "move", "from": "/a/b", "path": "/c"}], {"a": {}, "c": 1}),
    ({"a": {"b": 1}}, [{"op": "copy", "from": "/a", "path": "/c"}, {"op": "replace", "path": "/c/b", "value": 2}],
     {"a": {"b": 1}, "c": {"b": 2}}),
    ({"x/y": {"m~n": 1}}, [{"op": "replace", "path": "/x~1y/m~0n", "value": 2}], {"x/y": {"m~n": 2}}),
    ({"a": 1}, [{"op": "test", "path": "/a", "value": 1.0}], {"a": 1}),
    ({"a": 1}, [{"op": "test", "path": "/b", "value": None}], {"a": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("target", "operations", "expected"), STEPS)
def test_json_patch(target: Any, operations: list[dict[str, Any]], expected: Any) -> None:
    before = copy.deepcopy((target, operations))
    assert json_patch(target, operations) == expected
    assert (target, operations) == before


FAILURES: list[tuple[Any, dict[str, Any], str]] = [
    ({}, {"op": "remove", "path": "/a"}, "operation 0: /a: no such field"),
    ({}, {"op": "replace", "path": "/a", "value": 1}, "operation 0: /a: no such field"),
    ({}, {"op": "add", "path": "/a/b", "value": 1}, "operation 0: /a: no such field"),
    ({"a": [1]}, {"op": "add", "path": "/a/2", "value": 1}, "index 2 is out of range"),
    ({"a": [1]}, {"op": "remove", "path": "/a/01"}, "'01' is not a list index"),
    ({"a": 1}, {"op": "test", "path": "/a", "value": True}, "testing value /a failed"),
    ({"a": 1}, {"op": "nope", "path": "/a"}, "unknown op 'nope'"),
    ({"a": 1}, {"op": "add", "path": "/a"}, "missing field 'value'"),
    ({"a": 1}, {"op": "add", "path": "a", "value": 1}, "'a' is not a JSON pointer"),
    ({"a": {"b": 1}}, {"op": "move", "from": "/a", "path": "/a/b/c"}, "cannot be moved into itself"),
]


@pytest.mark.parametrize(("target", "operation", "text"), FAILURES)
def test_what_cannot_be_done(target: Any, operation: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match="operation 0") as error:
        json_patch(target, [operation])
    assert text in str(error.value)


SCALARS = st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "x"])
DOCUMENTS = st.recursive(
    SCALARS, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.sampled_from("abc"), v, max_size=3), max_leaves=8
)


@given(DOCUMENTS, DOCUMENTS)
def test_a_merge_patch_twice_is_once(target: Any, patch: Any) -> None:
    once = merge_patch(target, patch)
    assert merge_patch(once, patch) == once


@given(DOCUMENTS, DOCUMENTS)
def test_add_then_remove_is_nothing(target: Any, value: Any) -> None:
    document = {"keep": target}
    added = json_patch(document, [{"op": "add", "path": "/new", "value": value}])
    assert added == {"keep": target, "new": value}
    assert json_patch(added, [{"op": "remove", "path": "/new"}]) == document


@pytest.mark.parametrize(
    "operations",
    [
        [{"op": "copy", "from": "", "path": f"/{i}"} for i in range(30)],  # doubles thirty times
        [{"op": "copy", "from": "/a", "path": "/a/b"} for _ in range(10_000)],  # one level deeper each time
        [{"op": "copy", "from": "/text", "path": f"/{i}"} for i in range(1_000)],
    ],
)
def test_copies_are_limited(operations: list[Any]) -> None:
    with pytest.raises(ValueError, match="copie"):
        json_patch({"a": {}, "text": "x" * 10_000}, operations)


OBJECTS = st.dictionaries(st.sampled_from("abc"), DOCUMENTS, max_size=3)


def without_nulls(value: Any) -> Any:
    """A merge patch can make no null: it removes."""
    if isinstance(value, dict):
        return {k: without_nulls(v) for k, v in value.items() if v is not None}
    return value


def difference(before: Any, after: Any) -> Any:
    """The merge patch from one to the other."""
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return after
    gone = {k: None for k in before if k not in after}
    changed = {k: difference(before[k], v) if k in before else v for k, v in after.items() if before.get(k, ...) != v}
    return gone | changed


@given(OBJECTS.map(without_nulls), OBJECTS.map(without_nulls))
def test_a_difference_leads_there(before: Any, after: Any) -> None:
    assert merge_patch(before, difference(before, after)) == after


@given(OBJECTS.map(without_nulls), OBJECTS.map(without_nulls), OBJECTS.map(without_nulls))
def test_patches_of_different_fields_commute(target: Any, left: Any, right: Any) -> None:
    right = {k: v for k, v in right.items() if k not in left}
    assert merge_patch(merge_patch(target, left), right) == merge_patch(merge_patch(target, right), left)


@given(DOCUMENTS, DOCUMENTS)
def test_moving_there_and_back_is_nothing(left: Any, right: Any) -> None:
    document = {"a": left, "b": {"c": right}}
    there = [{"op": "move", "from": "/a", "path": "/b/d"}]
    back = [{"op": "move", "from": "/b/d", "path": "/a"}]
    assert json_patch(json_patch(document, there), back) == document
    copied = json_patch(document, [{"op": "copy", "from": "/a", "path": "/b/d"}, {"op": "test", "path": "/b/d",
                                                                                "value": left}])  # fmt: skip
    assert copied["b"]["d"] == left == copied["a"]


@given(OBJECTS, st.lists(st.sampled_from(["remove", "replace", "test"]), min_size=1, max_size=3))
def test_a_patch_that_fails_changes_nothing(target: Any, operations: list[str]) -> None:
    before = copy.deepcopy(target)
    wrong = [{"op": op, "path": "/nowhere/x", "value": 1} for op in operations]
    steps = [{"op": "add", "path": "/a", "value": 1}, *wrong]
    with pytest.raises(ValueError, match="operation 1"):
        json_patch(target, steps)
    assert target == before
