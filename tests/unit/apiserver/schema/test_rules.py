from __future__ import annotations

from typing import Any

import pytest

from apiserver.schema.rules import check_structural

Json = dict[str, Any]
TEXT: Json = {"type": "string"}
BASE = "spec.validation.openAPIV3Schema"
AT = f"{BASE}.properties[x]"


def problems(schema: Any) -> list[str]:
    """Of a custom resource whose field `x` has this schema."""
    found = check_structural({"type": "object", "properties": {"x": schema}})
    return [f"{c.field.removeprefix(AT)}: {c.message}" for c in found]


def of_root(schema: Any) -> list[str]:
    return [f"{c.field.removeprefix(BASE)}: {c.message}" for c in check_structural(schema)]


GOOD: list[Json] = [
    TEXT,
    {"x-kubernetes-int-or-string": True},
    {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
    {"x-kubernetes-int-or-string": True, "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]},
                                                   {"pattern": "^1"}]},
    {"x-kubernetes-preserve-unknown-fields": True},
    {"type": "object", "additionalProperties": TEXT},
    {"type": "object", "properties": {"a": TEXT, "b": TEXT}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
    {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
    {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "kind"],
     "items": {"type": "object", "required": ["name"],
               "properties": {"name": TEXT, "kind": {**TEXT, "default": "k"}}}},
    {"type": "object", "properties": {"a": {**TEXT, "default": "v"}}, "default": {}},
    {**TEXT, "nullable": True, "description": "d", "x-kubernetes-validations": [{"rule": "self != ''"}]},
]  # fmt: skip


@pytest.mark.parametrize("schema", GOOD)
def test_structural(schema: Json) -> None:
    assert problems(schema) == []


BAD: list[tuple[Json, list[str]]] = [
    ({}, [".type: Required value: must not be empty for specified object fields"]),
    ({"type": "array"}, [".items: Required value: must be specified"]),
    (
        {"type": "array", "items": {}},
        [".items.type: Required value: must not be empty for specified array items"],
    ),
    (
        {"type": "object", "additionalProperties": {}},
        [".additionalProperties.type: Required value: must not be empty for specified object fields"],
    ),
    (
        {"type": "text"},
        ['.type: Unsupported value: "text": supported values: '
         '"array", "boolean", "integer", "number", "object", "string"'],
    ),
    ({**TEXT, "$ref": "#/definitions/a"}, [".$ref: Forbidden: $ref is not supported"]),
    ({**TEXT, "definitions": {"a": TEXT}}, [".definitions: Forbidden: definitions is not supported"]),
    (
        {"type": "object", "properties": {"a": TEXT}, "additionalProperties": TEXT},
        [".additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"],
    ),
    (
        {"type": "array", "items": TEXT, "uniqueItems": True},
        [".uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic"],
    ),
    (
        {"type": "object", "x-kubernetes-preserve-unknown-fields": False},
        [".x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined"],
    ),
    (
        {**TEXT, "anyOf": [{"type": "string", "default": "a", "nullable": True, "description": "d"}]},
        [
            ".anyOf[0].default: Forbidden: must be undefined to be structural",
            ".anyOf[0].description: Forbidden: must be empty to be structural",
            ".anyOf[0].nullable: Forbidden: must be false to be structural",
            ".anyOf[0].type: Forbidden: must be empty to be structural",
        ],
    ),
    (
        {"type": "object", "properties": {"a": TEXT}, "not": {"properties": {"a": {"type": "string"}}}},
        [".not.properties[a].type: Forbidden: must be empty to be structural"],
    ),
    (
        {"type": "object", "allOf": [{"additionalProperties": False}]},
        [".allOf[0].additionalProperties: Forbidden: must be undefined to be structural"],
    ),
    (
        {"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object"}},
        [".x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map"],
    ),
    (
        {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"],
         "items": {"type": "object"}},
        ['.x-kubernetes-list-map-keys: Invalid value: ["a"]: entries must all be names of item properties'],
    ),
    (
        {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"],
         "items": {"type": "object", "properties": {"a": TEXT}}},
        [".items.properties[a].default: Required value: this property is in x-kubernetes-list-map-keys, "
         "so it must have a default or be a required property"],
    ),
    (
        {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"],
         "items": {"type": "object", "required": ["a"], "properties": {"a": {"type": "object"}}}},
        ['.items.properties[a].type: Invalid value: "object": must be a scalar type if parent array\'s '
         "x-kubernetes-list-type is map"],
    ),
    (
        {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"], "items": TEXT},
        ['.items.type: Invalid value: "string": must be object if parent array\'s x-kubernetes-list-type is map'],
    ),
    (
        {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "set"},
        [".items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with "
         "x-kubernetes-list-type=set"],
    ),
    (
        {**TEXT, "x-kubernetes-list-type": "atomic"},
        ['.type: Invalid value: "string": must be array if x-kubernetes-list-type is specified'],
    ),
    (
        {"type": "object", "x-kubernetes-map-type": "set"},
        ['.x-kubernetes-map-type: Unsupported value: "set": supported values: "atomic", "granular"'],
    ),
    (
        {"x-kubernetes-int-or-string": True, "x-kubernetes-preserve-unknown-fields": True},
        [".x-kubernetes-preserve-unknown-fields: Invalid value: true: "
         "must be false if x-kubernetes-int-or-string is true"],
    ),
    (
        {"type": "object", "x-kubernetes-embedded-resource": True},
        [".properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without "
         "x-kubernetes-preserve-unknown-fields"],
    ),
    (
        {"type": "object", "properties": {"a": TEXT}, "default": {"b": 1}},
        ['.default: Invalid value: {"b":1}: must not have unknown fields'],
    ),
    (
        {"type": "integer", "default": "a"},
        [f'.default: Invalid value: "string": {AT}.default in body must be of type integer: "string"'],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "expected"), BAD)
def test_not_structural(schema: Json, expected: list[str]) -> None:
    assert problems(schema) == expected


ROOTS: list[tuple[Json, list[str]]] = [
    ({}, [".type: Required value: must not be empty at the root"]),
    ({"type": "string"}, ['.type: Invalid value: "string": must be object at the root']),
    (
        {"type": "object", "additionalProperties": TEXT},
        [".additionalProperties: Forbidden: must not be used at the root"],
    ),
    (
        {"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": TEXT}}}},
        [".properties[metadata]: Forbidden: must not specify anything other than name and generateName, "
         "but metadata is implicitly specified"],
    ),
    (
        {"type": "object", "properties": {"kind": {"type": "integer"}}},
        ['.properties[kind].type: Invalid value: "integer": must be string'],
    ),
    (
        {"type": "object", "properties": {"metadata": {"type": "object", "properties": {"name": {
            **TEXT, "default": "a"}}}}},
        [".properties[metadata].properties[name].default: Forbidden: must not be set in top-level metadata"],
    ),
    (
        {"type": "object", "anyOf": [{"properties": {"a": {"minLength": 1}}}]},
        [f".properties[a]: Required value: because it is defined in {BASE}.anyOf[0].properties[a]"],
    ),
    (
        {"type": "object", "properties": {"spec": {}}},
        [".properties[spec].type: Required value: must not be empty for specified object fields"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "expected"), ROOTS)
def test_roots(schema: Json, expected: list[str]) -> None:
    assert of_root(schema) == expected


def test_metadata_may_restrict_the_name() -> None:
    name = {**TEXT, "maxLength": 5}
    assert (
        of_root({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"name": name}}}}) == []
    )


@pytest.mark.parametrize(
    "schema",
    [None, [], {"properties": []}, {"type": 1}, {"items": {"type": True}}, {"allOf": {}}, {"maxLength": True},
     {"required": [1]}, {"not": "x"}, {"additionalProperties": 1}],
)  # fmt: skip
def test_what_is_no_schema_at_all(schema: Any) -> None:
    assert problems(schema) != []


def test_a_bad_pattern() -> None:
    (found,) = problems({**TEXT, "pattern": "(?=a)"})
    assert found.startswith(""".pattern: Invalid value: "(?=a)": must be a valid regular expression, but isn't:""")


def test_very_deep_schemas_are_refused() -> None:
    schema: Json = {"type": "string"}
    for _ in range(2000):
        schema = {"type": "array", "items": schema}
    assert [c.message for c in check_structural(schema)] == ['Invalid value: "": is nested too deeply']


def test_the_path_may_be_named() -> None:
    (found,) = check_structural({}, "spec.versions[0].schema.openAPIV3Schema")
    assert found.field == "spec.versions[0].schema.openAPIV3Schema.type"
