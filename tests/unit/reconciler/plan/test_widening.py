"""A schema leaves objects alone when they are valid under it too, and come to the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.schema.defaults import copy_json
from apiserver.schema.structural import compile_schema
from reconciler.plan.exports import Export, Turn
from reconciler.plan.widening import is_the_same, leaves_alone

Object = dict[str, Any]

OPEN = {"x-kubernetes-preserve-unknown-fields": True}
INT, TEXT = {"type": "integer"}, {"type": "string"}


def of(**properties: Any) -> Object:
    return {"type": "object", "properties": properties}


def spec(schema: Object, **more: Any) -> Object:
    """Of a resource with one version."""
    return versions({"name": "v1", "served": True, "storage": True, "schema": schema}, **more)


def versions(*found: Object, **more: Any) -> Object:
    names = {"kind": "Widget", "plural": "widgets", "singular": "widget"}
    return {"group": "example.io", "scope": "Namespaced", "names": names, "versions": [*found], **more}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (of(a=INT), of(a=INT)),
        (of(a=INT), of(a={**INT, "description": "how many"})),
        (of(a=INT), of(a=INT, b=TEXT)),
        (of(a=INT), of(a=INT, b=of(c={**TEXT, "default": "x"}))),
        ({**of(a=INT), "required": ["a"]}, of(a=INT)),
        (of(a={**TEXT, "enum": ["x"]}), of(a={**TEXT, "enum": ["x", "y"]})),
        (of(a={**INT, "maximum": 3}), of(a={**INT, "maximum": 4})),
        (of(a={**INT, "default": 1}), of(a={**INT, "default": 1}, b=TEXT)),
        (of(a={"type": "array", "items": of(a=INT)}), of(a={"type": "array", "items": of(a=INT, b=TEXT)})),
        ({"type": "object", "additionalProperties": INT}, {"type": "object", "additionalProperties": INT}),
    ],
)
def test_what_leaves_objects_alone(old: Object, new: Object) -> None:
    assert is_the_same(spec(old), spec(new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (of(a=INT), of(a=TEXT)),
        (of(a=INT), of(a={"type": "number"})),  # 1.0 is 1 as an integer
        (of(a=INT), of(a={"x-kubernetes-int-or-string": True})),
        (of(a=INT), of(a={**INT, "minimum": 1})),
        (of(a=INT), of(a={**INT, "default": 1})),
        (of(a={**INT, "default": 1}), of(a={**INT, "default": 2})),
        (of(a={**INT, "default": 1}), of(a=INT)),
        (of(a=INT), of(a=INT, b={**TEXT, "default": "x"})),
        ({**of(), **OPEN}, {**of(b=OPEN), **OPEN}),  # a null is left out there
        ({**of(), **OPEN}, {**of(b=of(c={**TEXT, "default": "x"})), **OPEN}),
        (of(a={"type": "array", "items": of()}), of(a={"type": "array", "items": of(b={**TEXT, "default": "x"})})),
        (of(a=INT), of(a={**INT, "nullable": True})),
        (of(a=INT), of()),
        (of(a={"type": "array"}), of(a={"type": "array", "x-kubernetes-list-type": "set"})),
        (of(a=of()), of(a={**of(), "x-kubernetes-embedded-resource": True})),
    ],
)  # fmt: skip
def test_what_does_not(old: Object, new: Object) -> None:
    assert not is_the_same(spec(old), spec(new))


@pytest.mark.parametrize(
    "more",
    [
        {"names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "shortNames": ["w"]}},
        {"scope": "Cluster"},
        {"conversion": {"strategy": "Webhook"}},
        {"nameValidation": "PathSegmentName"},
    ],
)
def test_names_scope_and_conversion_are_looked_at(more: Object) -> None:
    assert not is_the_same(spec(of()), spec(of(), **more))


def test_what_is_shown_makes_no_difference_and_the_status_does() -> None:
    one = {"name": "v1", "served": True, "storage": True, "schema": of()}
    assert is_the_same(versions(one), versions({**one, "additionalPrinterColumns": [{"name": "Size"}]}))
    assert not is_the_same(versions(one), versions({**one, "subresources": {"status": {}}}))


def test_a_version_may_come_beside_the_stored_one() -> None:
    one = {"name": "v1", "served": True, "storage": True, "schema": of(a=INT)}
    two = {"name": "v2", "served": True, "storage": False, "schema": of(a=INT, b=INT)}
    assert is_the_same(versions(one), versions(one, two))
    assert not is_the_same(versions(one), versions({**one, "storage": False}, {**two, "storage": True}))
    assert not is_the_same(versions(one, two), versions(one))
    # What v2 says of b is cut off now, and would be kept.
    assert not is_the_same(versions(one, two), versions({**one, "schema": of(a=INT, b=INT)}, two))
    assert is_the_same(versions(one, two), versions(one, {**two, "schema": of(a=INT, b=INT, c=INT)}))


def test_every_resource_of_an_export_counts() -> None:
    def export(*specs: Object) -> Export:
        schemas = tuple({"metadata": {"name": str(n)}, "spec": each} for n, each in enumerate(specs))
        return Export("root:a", "widgets", "c", "i", schemas)

    gadgets = {**spec(of(a=INT)), "names": {"kind": "Gadget", "plural": "gadgets"}}
    assert leaves_alone(Turn(export(spec(of()), gadgets), export(gadgets, spec(of(b=INT)))))
    assert not leaves_alone(Turn(export(spec(of())), export(spec(of()), gadgets)))
    assert not leaves_alone(Turn(export(spec(of()), gadgets), export(spec(of()))))


# -- what it says agrees with what the schemas do

leaves = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("integer")},
        optional={"minimum": st.integers(0, 2), "default": st.integers(0, 2), "nullable": st.booleans()},
    ),
    st.fixed_dictionaries({"type": st.just("string")}, optional={"enum": st.just(["a", "b"]), "default": st.just("a")}),
    st.just(OPEN),
)
schemas = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(
            lambda properties, rest: {"type": "object", "properties": properties, **rest},
            st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
            st.sampled_from([{}, OPEN]),
        ),
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(lambda items: {"type": "object", "additionalProperties": items}, inner),
    ),
    max_leaves=4,
)
values = st.recursive(
    st.one_of(st.integers(-1, 3), st.sampled_from(["a", "b"]), st.none(), st.just(1.0)),
    lambda inner: st.one_of(st.dictionaries(st.sampled_from("abc"), inner, max_size=2), st.lists(inner, max_size=2)),
    max_leaves=4,
)


def made(schema: Object, value: Any) -> Any:
    """What an object comes to, None if it is refused or loses something."""
    compiled, obj = compile_schema({"type": "object", "properties": {"spec": schema}}), {"spec": copy_json(value)}
    if compiled.prune(obj):
        return None
    compiled.default(obj)
    return None if compiled.validate(obj) else json.dumps(obj, sort_keys=True)


@st.composite
def alike(draw: st.DrawFn) -> tuple[Object, Object]:
    """Two schemas, the second often the first with something more."""
    old = draw(schemas)
    if draw(st.booleans()) or old.get("type") != "object" or "properties" not in old:
        return old, draw(schemas)
    return old, {**old, "properties": {**draw(st.dictionaries(st.sampled_from("abc"), schemas)), **old["properties"]}}


@settings(max_examples=2000)
@given(alike(), values)
def test_what_is_the_same_makes_the_same_of_every_object(both: tuple[Object, Object], value: Any) -> None:
    old, new = both
    was = made(old, value)
    if was is not None and is_the_same(spec(of(spec=old)), spec(of(spec=new))):
        assert made(new, value) == was, (old, new, value)
