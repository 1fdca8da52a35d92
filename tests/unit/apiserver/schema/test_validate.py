from __future__ import annotations

from typing import Any

import pytest

from apiserver.schema.structural import Schema, compile_schema


def texts(schema: dict[str, Any], value: Any) -> list[str]:
    """The errors of `value` as the field `x` of a custom resource."""
    root = compile_schema({"type": "object", "properties": {"x": schema}})
    return [f"{c.field}: {c.message}" for c in root.validate({"x": value})]


STRING = {"type": "string"}
INTEGER = {"type": "integer"}

CASES: list[tuple[dict[str, Any], Any, list[str]]] = [
    (INTEGER, "1", ['x: Invalid value: "string": x in body must be of type integer: "string"']),
    (INTEGER, True, ['x: Invalid value: "boolean": x in body must be of type integer: "boolean"']),
    (INTEGER, 1.5, ['x: Invalid value: "number": x in body must be of type integer: "number"']),
    (INTEGER, None, ['x: Invalid value: "null": x in body must be of type integer: "null"']),
    (INTEGER, 1.0, []),
    ({"type": "number"}, 1, []),
    ({**INTEGER, "format": "int64"}, 1.5, ['x: Invalid value: "double": x in body must be of type int64: "double"']),
    (
        {**INTEGER, "format": "int32"},
        2**31,
        ['<nil>: Invalid value: "": Checked value must be of type integer with format int32 in x'],
    ),
    ({**STRING, "nullable": True}, None, []),
    ({"x-kubernetes-int-or-string": True}, 1, []),
    ({"x-kubernetes-int-or-string": True}, "1%", []),
    (
        {"x-kubernetes-int-or-string": True},
        True,
        ['x: Invalid value: "boolean": x in body must be of type integer,string: "boolean"'],
    ),
    ({**STRING, "enum": ["a", "b"]}, "q", ['x: Unsupported value: "q": supported values: "a", "b"']),
    ({**INTEGER, "enum": [1, 2]}, 3, ['x: Unsupported value: 3: supported values: "1", "2"']),
    ({**INTEGER, "enum": [1, 2]}, 1.0, []),
    ({**STRING, "maxLength": 3}, "abcd", ["x: Too long: may not be more than 3 bytes"]),
    ({**STRING, "maxLength": 1}, "ab", ["x: Too long: may not be more than 1 byte"]),
    ({**STRING, "minLength": 2}, "a", ['x: Invalid value: "a": x in body should be at least 2 chars long']),
    ({**STRING, "maxLength": 3}, "äöü", []),
    ({**STRING, "pattern": "^a+$"}, "b", ["x: Invalid value: \"b\": x in body should match '^a+$'"]),
    ({**STRING, "pattern": "a"}, "bab", []),
    ({**INTEGER, "maximum": 3}, 4, ["x: Invalid value: 4: x in body should be less than or equal to 3"]),
    (
        {**INTEGER, "maximum": 3, "exclusiveMaximum": True},
        3,
        ["x: Invalid value: 3: x in body should be less than 3"],
    ),
    ({**INTEGER, "minimum": 3}, 2, ["x: Invalid value: 2: x in body should be greater than or equal to 3"]),
    (
        {"type": "number", "minimum": 0.5, "exclusiveMinimum": True},
        0.5,
        ["x: Invalid value: 0.5: x in body should be greater than 0.5"],
    ),
    ({**INTEGER, "multipleOf": 2}, 3, ["x: Invalid value: 3: x in body should be a multiple of 2"]),
    ({"type": "number", "multipleOf": 0.1}, 0.3, []),
    ({"type": "array", "items": STRING, "maxItems": 1}, ["a", "b"], ["x: Too many: 2: must have at most 1 item"]),
    (
        {"type": "array", "items": STRING, "minItems": 1},
        [],
        ["x: Invalid value: 0: x in body should have at least 1 items"],
    ),
    (
        {"type": "array", "items": INTEGER},
        [1, "a"],
        ['x[1]: Invalid value: "string": x[1] in body must be of type integer: "string"'],
    ),
    (
        {"type": "array", "items": STRING, "uniqueItems": True},
        ["a", "a"],
        ['x: Invalid value: "": x in body shouldn\'t contain duplicates'],
    ),
    (
        {"type": "array", "items": STRING, "x-kubernetes-list-type": "set"},
        ["a", "b", "a", "a"],
        ['x[2]: Duplicate value: "a"'],
    ),
    ({"type": "array", "items": {}, "x-kubernetes-list-type": "set"}, [1, True, "1"], []),
    (
        {
            "type": "array",
            "items": {"type": "object"},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
        [{"name": "a"}, {"name": "b"}, {"name": "a", "v": 1}],
        ['x[2]: Duplicate value: {"name":"a"}'],
    ),
    (
        {"type": "object", "additionalProperties": STRING},
        {"k": 1},
        ['x.k: Invalid value: "integer": x.k in body must be of type string: "integer"'],
    ),
    (
        {"type": "object", "maxProperties": 1, "additionalProperties": STRING},
        {"a": "", "b": ""},
        ["x: Too many: 2: must have at most 1 item"],
    ),
    (
        {"type": "object", "minProperties": 1},
        {},
        ["x: Invalid value: 0: x in body should have at least 1 properties"],
    ),
    ({"type": "object", "required": ["a"], "properties": {"a": STRING}}, {}, ["x.a: Required value"]),
    ({**STRING, "format": "date-time"}, "2020-01-01T00:00:00Z", []),
    (
        {**STRING, "format": "date-time"},
        "yesterday",
        ['x: Invalid value: "yesterday": x in body must be of type date-time: "yesterday"'],
    ),
    ({**STRING, "format": "no-such-format"}, "anything", []),
    (
        {**STRING, "anyOf": [{"pattern": "^a"}, {"pattern": "^b"}]},
        "c",
        [
            '<nil>: Invalid value: "": "x" must validate at least one schema (anyOf)',
            "x: Invalid value: \"c\": x in body should match '^a'",
        ],
    ),
    (
        {**INTEGER, "oneOf": [{"minimum": 1}, {"minimum": 2}]},
        3,
        ['<nil>: Invalid value: "": "x" must validate one and only one schema (oneOf). Found 2 valid alternatives'],
    ),
    (
        {**INTEGER, "allOf": [{"minimum": 5}, {"maximum": 9}]},
        3,
        [
            "x: Invalid value: 3: x in body should be greater than or equal to 5",
            '<nil>: Invalid value: "": "x" must validate all the schemas (allOf)',
        ],
    ),
    (
        {**STRING, "not": {"enum": ["a"]}},
        "a",
        ['<nil>: Invalid value: "": "x" must not validate the schema (not)'],
    ),
    (
        {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
        {"kind": ""},
        ["x.apiVersion: Required value", 'x.kind: Invalid value: "": must not be empty'],
    ),
]


@pytest.mark.parametrize(("schema", "value", "expected"), CASES)
def test_messages(schema: dict[str, Any], value: Any, expected: list[str]) -> None:
    assert texts(schema, value) == expected


def test_several_errors_come_together(gadget: Schema) -> None:
    found = gadget.validate({"spec": {"size": "x", "mode": "q"}})
    assert [(c.reason, c.field) for c in found] == [
        ("FieldValueTypeInvalid", "spec.size"),
        ("FieldValueNotSupported", "spec.mode"),
    ]


def test_a_path_is_put_before_the_field(gadget: Schema) -> None:
    assert [c.field for c in gadget.validate({"spec": {}}, "template")] == ["template.spec.size"]


def test_equal_schemas_are_compiled_once_and_share_nodes(gadget_schema: dict[str, Any]) -> None:
    first, again = compile_schema(gadget_schema), compile_schema(dict(reversed(gadget_schema.items())))
    assert first is again
    other = compile_schema({"type": "object", "properties": {"spec": gadget_schema["properties"]["spec"]}})
    assert other is not first
    assert other.node("spec") is first.node("spec")


def test_navigation(gadget: Schema) -> None:
    parts = gadget.node("spec", "parts")
    assert parts is not None
    assert (parts.list_type, parts.map_keys) == ("map", ("name", "kind"))
    count = gadget.node("spec", "parts", 0, "count")
    assert count is not None and count.types == ("integer",)
    assert gadget.node("spec", "labels", "any") is not None
    assert gadget.node("spec", "no", "such") is None


def test_a_pattern_takes_linear_time() -> None:
    assert texts({**STRING, "pattern": "^(a+)+$"}, "a" * 2000 + "!") != []


def test_a_bad_pattern_is_an_error_of_the_value() -> None:
    (found,) = texts({**STRING, "pattern": "("}, "a")
    assert "but pattern is invalid" in found


STRICT = {"type": "string", "enum": ["good"]}
ENTRY = {"type": "object", "properties": {"key": STRING, "field": STRICT}, "required": ["key"]}
RATCHETED: list[tuple[dict[str, Any], Any, Any, list[str]]] = [
    (STRICT, "bad", "bad", []),
    (STRICT, "worse", "bad", ["x"]),
    ({"type": "object", "additionalProperties": STRICT}, {"a": "bad"}, {"a": "bad", "b": "bad"}, ["x.b"]),
    (
        {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["key"], "items": ENTRY},
        [{"key": "1", "field": "bad"}, {"key": "2"}],
        [{"key": "2", "field": "bad"}, {"key": "1", "field": "bad"}],
        ["x[0].field"],
    ),
    ({"type": "array", "items": STRICT}, ["bad"], ["bad"], []),
    ({"type": "array", "items": STRICT}, ["bad"], ["bad", "good"], ["x[0]"]),
    ({"type": "array", "x-kubernetes-list-type": "set", "items": STRICT}, ["bad"], ["bad", "good"], ["x[0]"]),
    ({**ENTRY, "required": ["key", "more"]}, {"key": "1"}, {"key": "1"}, []),
    ({**ENTRY, "required": ["key", "more"]}, {"key": "1"}, {"key": "2"}, ["x.more"]),
    ({"type": "number", "maximum": 1}, 2, 2.0, ["x"]),
]


@pytest.mark.parametrize(("schema", "old", "new", "fields"), RATCHETED)
def test_what_was_wrong_before_and_did_not_change_is_no_error(
    schema: dict[str, Any], old: Any, new: Any, fields: list[str]
) -> None:
    whole = {"type": "object", "properties": {"x": schema, "y": STRING}}
    errors = compile_schema(whole).validate({"x": new, "y": "new"}, old={"x": old, "y": "old"})
    assert [error.field for error in errors] == fields
