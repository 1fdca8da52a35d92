"""A schema is narrower when it refuses, or prunes, what another one took."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.schema.defaults import copy_json
from apiserver.schema.structural import compile_schema
from reconciler.plan.narrowing import narrower, narrower_resource

Object = dict[str, Any]

OPEN = {"x-kubernetes-preserve-unknown-fields": True}


def of(**properties: Any) -> Object:
    return {"type": "object", "properties": properties}


INT, TEXT = {"type": "integer"}, {"type": "string"}


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        (of(a=INT), of(a=TEXT), [".a: was integer, is string"]),
        (of(a=INT), of(a={"type": "number"}), []),
        (of(a={"type": "number"}), of(a=INT), [".a: was number, is integer"]),
        (of(a=INT), of(a={"x-kubernetes-int-or-string": True}), []),
        (of(a={"x-kubernetes-int-or-string": True}), of(a=INT), [".a: was an integer or a string, is integer"]),
        (of(a=INT), of(a=INT, b=TEXT), []),
        (of(a=INT, b=TEXT), of(a=INT), [".b: is no field any more"]),
        (of(a=INT), {**of(a=INT), "required": ["a"]}, [".a: is required"]),
        (of(a=INT), {**of(a={**INT, "default": 1}), "required": ["a"]}, []),
        (of(a=TEXT), of(a={**TEXT, "enum": ["x"]}), [".a: takes only x"]),
        (of(a={**TEXT, "enum": ["x", "y"]}), of(a={**TEXT, "enum": ["x"]}), [".a: takes only x"]),
        (of(a={**TEXT, "enum": ["x"]}), of(a={**TEXT, "enum": ["x", "y"]}), []),
        (of(a={**INT, "minimum": 1}), of(a={**INT, "minimum": 2}), [".a: its minimum is 2"]),
        (of(a={**INT, "maximum": 3}), of(a={**INT, "maximum": 4}), []),
        (of(a=TEXT), of(a={**TEXT, "maxLength": 4}), [".a: its maxLength is 4"]),
        (
            of(a={**INT, "minimum": 1}),
            of(a={**INT, "minimum": 1, "exclusiveMinimum": True}),
            [".a: its minimum does not count any more"],
        ),
        (of(a=TEXT), of(a={**TEXT, "pattern": "x"}), [".a: has another pattern"]),
        (of(a={**TEXT, "pattern": "x"}), of(a=TEXT), []),
        (of(a={**TEXT, "nullable": True}), of(a=TEXT), [".a: may not be null any more"]),
        (
            {"type": "object", **OPEN},
            of(a=INT),
            [".a: was of any type, is integer", ".: takes no other fields any more"],
        ),
        (of(a=INT), {"type": "object", **OPEN}, []),
        (of(a=INT), OPEN, []),
        (
            {"type": "object", "additionalProperties": TEXT},
            {"type": "object", "additionalProperties": INT},
            [".*: was string, is integer"],
        ),
        (
            of(a={"type": "array", "items": TEXT}),
            of(a={"type": "array", "items": INT}),
            [".a[]: was string, is integer"],
        ),
    ],
)
def test_what_is_narrower(old: Object, new: Object, what: list[str]) -> None:
    assert narrower(old, new) == what
    assert narrower(old, old) == narrower(new, new) == []


def test_of_a_resource_every_served_version_counts() -> None:
    def spec(**versions: Object) -> Object:
        made = [{"name": name, "served": True, "schema": schema} for name, schema in versions.items()]
        return {"scope": "Namespaced", "names": {"kind": "Widget"}, "versions": made}

    assert narrower_resource(spec(v1=of(a=INT)), spec(v1=of(a=INT), v2=of(a=TEXT))) == []
    assert narrower_resource(spec(v1=of(a=INT), v2=of()), spec(v2=of())) == ["version v1 is not served any more"]
    assert narrower_resource(spec(v1=of(a=INT)), spec(v1=of(a=TEXT))) == ["v1: .a: was integer, is string"]
    assert narrower_resource(spec(v1=of()), {**spec(v1=of()), "scope": "Cluster"}) == [
        "its scope was Namespaced, is Cluster"
    ]


# -- what it says agrees with what the schemas do

leaves = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("integer")}, optional={"minimum": st.integers(0, 2), "maximum": st.integers(1, 3)}
    ),
    st.fixed_dictionaries(
        {"type": st.just("string")},
        optional={
            "enum": st.lists(st.sampled_from(["a", "b"]), min_size=1, unique=True),
            "maxLength": st.integers(0, 2),
        },
    ),
    st.just({"x-kubernetes-int-or-string": True}),
    st.just(OPEN),
)
schemas = st.recursive(
    leaves,
    lambda inner: st.builds(
        lambda properties, required, rest: {
            "type": "object",
            "properties": properties,
            **({"required": required} if required else {}),
            **rest,
        },
        st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
        st.lists(st.sampled_from("ab"), unique=True, max_size=1),
        st.sampled_from([{}, OPEN]),
    ),
    max_leaves=4,
)
values = st.recursive(
    st.one_of(st.integers(-1, 4), st.sampled_from(["", "a", "b", "abc"])),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
    max_leaves=4,
)


def takes(schema: Object, value: Any) -> bool:
    """Whether an object is good and loses nothing."""
    whole = {"type": "object", "properties": {"spec": schema}}
    compiled, obj = compile_schema(whole), {"spec": copy_json(value)}
    unknown = compiled.prune(obj)
    compiled.default(obj)
    return not unknown and not compiled.validate(obj)


@settings(max_examples=300)
@given(schemas, schemas, values)
def test_what_is_no_narrower_takes_all_that_was_taken(old: Object, new: Object, value: Any) -> None:
    if not narrower(old, new) and takes(old, value):
        assert takes(new, value), (old, new, value)
