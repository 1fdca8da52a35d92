"""OpenAPI v2: what it loses of a schema, that references hold, and that protobuf says what JSON says."""

import re
import struct
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from apiserver.registry import kinds, openapi2
from apiserver.registry.builtins.served import target_builtins, workspace_builtins
from apiserver.registry.kindtable import overlay

Object = dict[str, Any]


def gadget(schema: Object) -> kinds.KindTable:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"}
    spec = {"group": "z.io", "scope": "Namespaced", "names": names, "versions": [version]}
    crd = {"metadata": {"name": "gadgets.z.io"}, "spec": spec}
    return overlay(workspace_builtins(), kinds.kinds_of_crd(crd))


def field_of(schema: Object) -> Any:
    table = gadget({"type": "object", "properties": {"field": schema}})
    return openapi2.document(table)["definitions"]["io.z.v1.Gadget"]["properties"]["field"]


TEXT = {"type": "string"}
PRESERVE = "x-kubernetes-preserve-unknown-fields"


@pytest.mark.parametrize(
    ("v3", "v2"),
    [
        ({"type": "object", "properties": {"a": {**TEXT, "pattern": "x", "default": "y"}}, "required": ["a"]},) * 2,
        ({"type": "object", "additionalProperties": {"type": "array", "items": TEXT}},) * 2,
        (
            {"type": "object", "properties": {"a": {**TEXT, "nullable": True}, "b": TEXT}, "required": ["a", "b"]},
            {"type": "object", "properties": {"a": {}, "b": TEXT}, "required": ["b"]},
        ),
        (
            {"type": "object", "nullable": True, "description": "d", "properties": {"a": TEXT}, "required": ["a"]},
            {"description": "d"},
        ),
        ({"type": "array", "nullable": True, "items": TEXT}, {}),
        ({"type": "object", PRESERVE: True, "properties": {"a": TEXT}, "required": ["a"]}, {PRESERVE: True}),
        ({"type": "object", "properties": {"a": {"type": "object", PRESERVE: True}}},
         {"type": "object", "properties": {"a": {PRESERVE: True}}}),
        (
            {"type": "object", "anyOf": [{"required": ["a"]}], "not": {"required": ["b"]}, "allOf": [{}], "oneOf": [{}],
             "properties": {"a": TEXT, "b": TEXT}},
            {"type": "object", "properties": {"a": TEXT, "b": TEXT}},
        ),
        (
            {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, TEXT]},
            {"x-kubernetes-int-or-string": True},
        ),
        ({"type": "array", "items": {"type": "object", "nullable": True}}, {"type": "array", "items": {}}),
    ],
)  # fmt: skip
def test_what_v2_keeps(v3: Object, v2: Object) -> None:
    assert field_of(v3) == v2


def test_a_kind_that_preserves_unknown_fields_is_an_object() -> None:
    document = openapi2.document(gadget({"type": "object", PRESERVE: True, "properties": {"spec": TEXT}}))
    gvk = [{"group": "z.io", "version": "v1", "kind": "Gadget"}]
    assert document["definitions"]["io.z.v1.Gadget"] == {
        "type": "object",
        "x-kubernetes-group-version-kind": gvk,
    }


@pytest.mark.parametrize("table", [workspace_builtins(), target_builtins(), gadget({"type": "object"})])
def test_every_reference_has_its_definition(table: kinds.KindTable) -> None:
    document = openapi2.document(table)
    names = {f"#/definitions/{name}" for name in document["definitions"]}
    for schema in (s for whole in document["definitions"].values() for s in walk(whole)):
        if "$ref" in schema:
            assert schema["$ref"] in names
            assert not {"type", "properties", "allOf"} & set(schema)
        if schema.get("type") == "array":
            assert "items" in schema
    sent = set(re.findall(r'"(#/definitions/[^"]+)"', orjson.dumps(document["paths"]).decode()))
    assert sent <= names


def walk(schema: Object) -> Iterator[Object]:
    yield schema
    inner = [*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")]
    for each in inner:
        if isinstance(each, dict):
            yield from walk(each)


def test_a_workspace_with_kinds_of_its_own_shares_the_rest() -> None:
    base, more = workspace_builtins(), gadget({"type": "object"})
    parts, with_own = openapi2._parts(base), openapi2._parts(more)
    assert all(a is b for a, b in zip(parts, with_own, strict=False))
    assert len(with_own) == len(parts) + 1
    published = openapi2.published(more)
    assert published.wire().startswith(openapi2.published(base).wire())


# -- protobuf, read with a reader that knows only the wire format ------------------------------------------------------


def fields(data: bytes) -> list[tuple[int, Any]]:
    found, at = [], 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = varint()
        wire: Any
        if tag & 7 == 0:
            wire = varint()
        else:
            size = varint() if tag & 7 == 2 else 8
            wire = data[at : at + size]
            at += size
            assert len(wire) == size
        found.append((tag >> 3, wire))
    return found


def one(data: bytes, number: int) -> Any:
    return next((value for n, value in fields(data) if n == number), b"")


def schema_of(data: bytes) -> Object:
    """Part of a Schema message as JSON."""
    out: Object = {}
    for number, value in fields(data):
        match number:
            case 1:
                out["$ref"] = value.decode()
            case 2 | 4 | 13:
                out[{2: "format", 4: "description", 13: "pattern"}[number]] = value.decode()
            case 5:
                out["default"] = orjson.loads(one(value, 2))
            case 11 | 12 | 14 | 15 | 16:
                name = {11: "maxLength", 12: "minLength", 14: "maxItems", 15: "minItems", 16: "uniqueItems"}[number]
                out[name] = value
            case 7 | 9:
                [out[{7: "maximum", 9: "minimum"}[number]]] = struct.unpack("<d", value)
            case 19:
                out.setdefault("required", []).append(value.decode())
            case 20:
                out.setdefault("enum", []).append(orjson.loads(one(value, 2)))
            case 21:
                [(which, inner)] = fields(value)
                out["additionalProperties"] = bool(inner) if which == 2 else schema_of(inner)
            case 22:
                out["type"] = one(value, 1).decode()
            case 23:
                out["items"] = schema_of(one(value, 1))
            case 25:
                entries = [entry for _, entry in fields(value)]
                out["properties"] = {one(e, 1).decode(): schema_of(one(e, 2)) for e in entries}
            case 31:
                out[one(value, 1).decode()] = orjson.loads(one(one(value, 2), 2))
            case _:
                out[f"field {number}"] = value
    return out


@pytest.mark.parametrize("table", [workspace_builtins(), target_builtins()])
def test_protobuf_says_what_json_says(table: kinds.KindTable) -> None:
    document, wire = openapi2.document(table), fields(openapi2.published(table).wire())
    assert wire[0] == (1, b"2.0")
    definitions, paths = {}, []
    for number, value in wire:
        if number == 9:
            definitions |= {one(e, 1).decode(): schema_of(one(e, 2)) for _, e in fields(value)}
        elif number == 8:
            paths += [one(e, 1).decode() for _, e in fields(value)]
    assert definitions == document["definitions"]
    assert paths == list(document["paths"])


def test_parameters_and_answers_in_protobuf() -> None:
    name = b"/api/v1/namespaces/{namespace}/configmaps/{name}"
    parts = [p for number, value in fields(openapi2.published(workspace_builtins()).wire()) if number == 8
             for _, p in fields(value)]  # fmt: skip
    item = next(one(p, 2) for p in parts if one(p, 1) == name)
    patch = one(item, 8)
    assert one(patch, 5).startswith(b"patch")
    consumed = [value for number, value in fields(patch) if number == 7]
    assert b"application/strategic-merge-patch+json" in consumed
    sent = [one(value, 1) for number, value in fields(patch) if number == 8]
    assert one(one(sent[0], 1), 3) == b"body"
    assert b"fieldValidation" in [one(one(one(p, 2), 3), 4) for p in sent[1:]]
    entry = one(one(patch, 9), 1)
    assert one(entry, 1) == b"200"
    schema = one(one(one(one(entry, 2), 1), 2), 1)
    assert one(schema, 1) == b"#/definitions/io.k8s.api.core.v1.ConfigMap"
