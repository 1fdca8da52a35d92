"""In step, or not sure."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reconciler.syncing.compare import in_step, same


def owned(obj: Any) -> Any:
    """fieldsV1 as an apply of `obj` leaves it (lists and what is named `atomic` as atoms)."""
    return {f"f:{k}": owned(v) if k != "atomic" else {} for k, v in obj.items()} if isinstance(obj, dict) else {}


def live(rendered: dict[str, Any], fields: Any = None, **more: Any) -> dict[str, Any]:
    obj = copy.deepcopy({**rendered, **more})
    entry = {"manager": "treeplane", "operation": "Apply", "fieldsV1": owned(rendered) if fields is None else fields}
    obj.setdefault("metadata", {})["managedFields"] = [{"manager": "kubelet", "operation": "Update"}, entry]
    return obj


def test_defaults_of_the_target_are_no_difference() -> None:
    rendered = {"spec": {"replicas": 1}}
    assert in_step(rendered, live(rendered, spec={"replicas": 1, "strategy": {"type": "RollingUpdate"}}))


def test_an_object_in_a_list_does_not_say_its_kind() -> None:
    rendered = {"data": {"a": "b"}}
    assert in_step({"apiVersion": "v1", "kind": "ConfigMap", **rendered}, live(rendered))


@pytest.mark.parametrize(
    ("wanted", "there"),
    [("0.5", "500m"), (1, "1"), ("1Gi", "1073741824"), ("1k", "1000"), ("1e3", 1000), ([], None), ({}, None)],
)
def test_the_same_said_differently(wanted: Any, there: Any) -> None:
    rendered = {"spec": {"x": wanted}}
    assert in_step(rendered, live(rendered, spec={"x": there}))


@pytest.mark.parametrize(
    ("wanted", "there"), [("a", "b"), (1, 2), (True, 1), ("500m", "5"), ({"a": 1}, {}), ([1], [1, 2]), (1, None)]
)
def test_a_difference(wanted: Any, there: Any) -> None:
    rendered = {"spec": {"x": wanted}}
    assert not in_step(rendered, live(rendered, spec={"x": there}))


def test_what_is_left_out_of_objects_is_no_difference() -> None:
    rendered = {"spec": {"a": "", "b": 0, "c": False, "d": {}, "e": []}}
    assert in_step(rendered, live(rendered, spec={}))
    assert not in_step({"spec": {"a": "x"}}, live({"spec": {"a": "x"}}, spec={}))


def test_a_field_that_is_no_longer_rendered_has_to_go() -> None:
    before = {"data": {"a": "1", "b": "2"}}
    assert not in_step({"data": {"a": "1"}}, live(before))
    others = live({"data": {"a": "1"}}, data={"a": "1", "b": "somebody else's"})
    assert in_step({"data": {"a": "1"}}, others)


@pytest.mark.parametrize("name", ["granular", "atomic"])
def test_a_field_within_what_is_owned_as_a_whole_has_to_go(name: str) -> None:
    """A label of a nodeSelector, a resourceName of a Role's rule: managedFields do not name it."""
    items = {"atomic": {"disk": "ssd", "zone": "a"}, "granular": [{"verbs": ["get"], "resourceNames": ["x"]}]}
    fewer = {"atomic": {"disk": "ssd"}, "granular": [{"verbs": ["get"]}]}
    before, after = {"spec": {name: items[name]}}, {"spec": {name: fewer[name]}}
    assert in_step(before, live(before))
    assert not in_step(after, live(before))


def test_items_of_keyed_lists() -> None:
    fields = {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}, "f:name": {}}}}
    rendered = {"ports": [{"port": 80, "name": "web"}]}
    found = live(rendered, fields, ports=[{"port": 80, "name": "web", "protocol": "TCP"}])
    assert in_step(rendered, found), "the default part of the key need not be rendered"
    assert not in_step({"ports": [{"port": 81, "name": "web"}]}, found)
    gone = live(rendered, {**fields, "f:finalizers": {'v:"x"': {}}})
    assert not in_step({**rendered, "finalizers": []}, gone)


def test_never_applied_by_us_is_not_in_step() -> None:
    assert not in_step({"data": {}}, {"metadata": {}, "data": {}})


def test_a_dry_run_that_changes_bookkeeping_only() -> None:
    before = live({"data": {"a": "1"}})
    after = copy.deepcopy(before)
    after["metadata"] |= {"managedFields": [], "resourceVersion": "9", "generation": 4}
    assert same(before, {"apiVersion": "v1", "kind": "ConfigMap", **after})
    after["data"]["a"] = "2"
    assert not same(before, after)


JSON = st.recursive(
    st.integers(1, 9) | st.sampled_from("abc"),
    lambda inner: (
        st.dictionaries(st.sampled_from(["x", "y", "atomic"]), inner, min_size=1, max_size=3)
        | st.lists(inner, max_size=3)
    ),
    max_leaves=10,
)
OBJECTS = st.dictionaries(st.sampled_from(["spec", "data"]), JSON, min_size=1)


def meaning(value: Any) -> Any:
    """Without empty lists in objects, which mean the same as none."""
    return {k: meaning(v) for k, v in value.items() if v != []} if isinstance(value, dict) else value


@given(OBJECTS)
def test_what_was_applied_is_in_step(obj: dict[str, Any]) -> None:
    assert in_step(obj, live(obj))


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Everything within something, as what it is in and its name or number there."""
    for name, inner in list(value.items()) if isinstance(value, dict) else enumerate(value):
        yield value, name
        if isinstance(inner, dict | list):
            yield from places(inner)


@st.composite
def altered(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """An object without something that another has, or with something else in its place."""
    other = draw(OBJECTS)
    one = copy.deepcopy(other)
    within, name = draw(st.sampled_from(list(places(one))))
    if draw(st.booleans()):
        del within[name]
    else:
        within[name] = draw(JSON)
    return one, other


@given(st.tuples(OBJECTS, OBJECTS) | altered())
@example(({"spec": [{"x": "a"}, {"x": 1}]}, {"spec": [{"x": "a"}, {"x": 1, "y": 1}]}))
@example(({"spec": {"atomic": {"x": 1}}}, {"spec": {"atomic": {"x": 1, "y": 1}}}))
def test_in_step_means_nothing_rendered_is_missing(both: tuple[dict[str, Any], dict[str, Any]]) -> None:
    one, other = both
    if in_step(one, live(other)):
        assert meaning(one) == meaning(other)
