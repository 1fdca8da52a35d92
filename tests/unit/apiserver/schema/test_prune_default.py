from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from apiserver.schema.structural import Schema, compile_schema

LEAVES = st.none() | st.booleans() | st.integers(-5, 15) | st.floats(0, 4) | st.sampled_from(["", "a", "b", "q"])
NAMES = st.sampled_from(
    [
        "spec",
        "size",
        "mode",
        "free",
        "labels",
        "tags",
        "parts",
        "name",
        "kind",
        "nope",
        "metadata",
        "nested",
        "depth",
        "status",
    ]
)
VALUES = st.recursive(LEAVES, lambda v: st.lists(v, max_size=3) | st.dictionaries(NAMES, v, max_size=4), max_leaves=15)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=4)


def test_unknown_fields_are_dropped_and_named(gadget: Schema) -> None:
    obj: dict[str, Any] = {
        "apiVersion": "z.io/v1",
        "kind": "Gadget",
        "metadata": {"name": "g", "anything": 1},
        "spec": {
            "size": 1,
            "nope": 1,
            "parts": [{"name": "a", "x": 1}],
            "free": {"kept": {"deep": 1}},
            "labels": {"kept": "v"},
        },
        "top": 1,
    }
    assert gadget.prune(obj) == ["spec.nope", "spec.parts[0].x", "top"]
    assert obj["spec"] == {
        "size": 1,
        "parts": [{"name": "a"}],
        "free": {"kept": {"deep": 1}},
        "labels": {"kept": "v"},
    }
    assert obj["metadata"] == {"name": "g", "anything": 1}
    assert obj["apiVersion"] == "z.io/v1"


def test_unknown_fields_can_be_named_without_dropping_them(gadget: Schema) -> None:
    obj = {"spec": {"size": 1, "nope": 1}}
    assert gadget.unknown(obj) == ["spec.nope"]
    assert obj == {"spec": {"size": 1, "nope": 1}}


def test_one_object_in_two_places_is_pruned_in_both(gadget: Schema) -> None:
    part = {"name": "a", "x": 1}  # what a YAML alias gives
    obj = {"spec": {"parts": [part, part]}}
    assert gadget.prune(obj) == ["spec.parts[0].x", "spec.parts[1].x"]
    assert part == {"name": "a"}


def test_known_fields_below_preserved_ones_are_pruned() -> None:
    inner = {"type": "object", "properties": {"a": {"type": "string"}}}
    schema = compile_schema(
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"inner": inner}}
    )
    obj = {"other": {"kept": 1}, "inner": {"a": "", "b": 1}}
    assert schema.prune(obj) == ["inner.b"]
    assert obj == {"other": {"kept": 1}, "inner": {"a": ""}}


def test_embedded_resources_keep_their_metadata() -> None:
    embedded = {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "properties": {"spec": {"type": "object"}},
    }
    schema = compile_schema({"type": "object", "properties": {"template": embedded}})
    obj = {"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"x": 1}, "spec": {"y": 1}, "z": 1}}
    assert schema.prune(obj) == ["template.spec.y", "template.z"]
    assert obj["template"]["metadata"] == {"x": 1}


def test_defaults_reach_into_defaulted_structs_and_items(gadget: Schema) -> None:
    obj: dict[str, Any] = {"spec": {"size": 1, "parts": [{"name": "a"}]}}
    gadget.default(obj)
    assert obj == {
        "spec": {"size": 1, "mode": "a", "nested": {"depth": 3}, "parts": [{"name": "a", "kind": "plain"}]},
    }


def test_defaults_are_copies(gadget: Schema) -> None:
    first: dict[str, Any] = {"spec": {}}
    gadget.default(first)
    first["spec"]["nested"]["depth"] = 99
    second: dict[str, Any] = {"spec": {}}
    gadget.default(second)
    assert second["spec"]["nested"] == {"depth": 3}


def test_nulls(gadget: Schema) -> None:
    obj: dict[str, Any] = {
        "spec": {"size": None, "mode": None, "note": None, "labels": {"a": None}, "free": {"a": None}}
    }
    gadget.default(obj)
    assert obj["spec"] == {"mode": "a", "note": None, "labels": {}, "free": {"a": None}, "nested": {"depth": 3}}


def test_whole_floats_become_integers(gadget: Schema) -> None:
    obj: dict[str, Any] = {"spec": {"size": 2.0}}
    gadget.default(obj)
    assert isinstance(obj["spec"]["size"], int)


@given(OBJECTS)
def test_prune_is_idempotent(gadget: Schema, obj: dict[str, Any]) -> None:
    gadget.prune(obj)
    once = copy.deepcopy(obj)
    assert gadget.prune(obj) == []
    assert obj == once


@given(OBJECTS)
def test_default_is_idempotent(gadget: Schema, obj: dict[str, Any]) -> None:
    gadget.default(obj)
    once = copy.deepcopy(obj)
    gadget.default(obj)
    assert obj == once


@given(st.integers(1, 10), st.lists(st.sampled_from("abc"), unique=True))
def test_what_defaults_make_is_valid(gadget: Schema, size: int, names: list[str]) -> None:
    obj: dict[str, Any] = {"spec": {"size": size, "mode": None, "parts": [{"name": n} for n in names]}}
    gadget.prune(obj)
    gadget.default(obj)
    assert gadget.validate(obj) == []


@given(OBJECTS)
def test_any_value_is_judged_without_a_crash(gadget: Schema, deployment: Schema, obj: dict[str, Any]) -> None:
    for schema in (gadget, deployment):
        value = copy.deepcopy(obj)
        schema.decode_errors(value)
        schema.prune(value)
        schema.default(value)
        schema.validate(value)
