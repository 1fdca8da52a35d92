"""OpenAPI v2 documents as protobuf: the messages of gnostic's openapi.v2 that openapi2.py uses, and no others.

An encoder is a function from JSON to bytes. What may hold anything (extensions, defaults, values of enum) goes as YAML
text, and JSON is YAML. Maps are lists of named entries, in the order of the document.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import orjson

Document = dict[str, Any]
Encoder = Callable[[Any], bytes]

_VARINT, _DOUBLE, _BYTES = 0, 1, 2


class WireField(NamedTuple):
    """`many`: a JSON list, each item a field of its own."""

    number: int
    wire: int
    encode: Encoder
    many: bool = False


def head(info: Document) -> bytes:
    """The beginning of a Document; paths() and definitions() of any number may follow."""
    about = _embedded(1, info["title"].encode()) + _embedded(2, info["version"].encode())
    return _embedded(1, b"2.0") + _embedded(2, about)


def paths(found: Document) -> bytes:
    return _embedded(8, _named(2, found, _path_item)) if found else b""


def definitions(found: Document) -> bytes:
    return _embedded(9, _named(1, found, _schema)) if found else b""


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _embedded(number: int, body: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(body)) + body


def _named(number: int, found: Document, encode: Encoder) -> bytes:
    """A map: entries {1: name, 2: value}."""
    return b"".join(
        [_embedded(number, _embedded(1, name.encode()) + _embedded(2, encode(value))) for name, value in found.items()]
    )


def _string(value: Any) -> bytes:
    return str(value).encode()


def _double(value: Any) -> bytes:
    return struct.pack("<d", value)


def _any(value: Any) -> bytes:
    return _embedded(2, orjson.dumps(value) + b"\n")


def _message(fields: dict[str, WireField], extensions: int, found: Document) -> bytes:
    """Fields in the order of the JSON; `extensions`: the number of what begins with `x-`. Anything else is left out."""
    parts = []
    for name, value in found.items():
        field = fields.get(name)
        if field is None:
            if name.startswith("x-"):
                parts.append(_embedded(extensions, _embedded(1, name.encode()) + _embedded(2, _any(value))))
            continue
        for each in value if field.many else (value,):
            body = field.encode(each)
            tag = _varint(field.number << 3 | field.wire)
            parts.append(tag + (_varint(len(body)) if field.wire == _BYTES else b"") + body)
    return b"".join(parts)


def _text(number: int, *, many: bool = False) -> WireField:
    return WireField(number, _BYTES, _string, many)


def _integer(number: int) -> WireField:
    return WireField(number, _VARINT, lambda v: _varint(int(v)))


def _number(number: int) -> WireField:
    return WireField(number, _DOUBLE, _double)


def _body(number: int, encode: Encoder, *, many: bool = False) -> WireField:
    return WireField(number, _BYTES, encode, many)


# -- schemas ----------------------------------------------------------------------------------------------------------


def _schema(found: Document) -> bytes:
    return _message(_SCHEMA, 31, found)


def _type(value: Any) -> bytes:
    names = value if isinstance(value, list) else [value]
    return b"".join([_embedded(1, name.encode()) for name in names])


def _additional(value: Any) -> bytes:
    return _varint(2 << 3) + _varint(int(value)) if isinstance(value, bool) else _embedded(1, _schema(value))


_DOCS = {"description": _text(1), "url": _text(2)}
_SCHEMA: dict[str, WireField] = {
    "$ref": _text(1),
    "format": _text(2),
    "title": _text(3),
    "description": _text(4),
    "default": _body(5, _any),
    "multipleOf": _number(6),
    "maximum": _number(7),
    "exclusiveMaximum": _integer(8),
    "minimum": _number(9),
    "exclusiveMinimum": _integer(10),
    "maxLength": _integer(11),
    "minLength": _integer(12),
    "pattern": _text(13),
    "maxItems": _integer(14),
    "minItems": _integer(15),
    "uniqueItems": _integer(16),
    "maxProperties": _integer(17),
    "minProperties": _integer(18),
    "required": _text(19, many=True),
    "enum": _body(20, _any, many=True),
    "additionalProperties": _body(21, _additional),
    "type": _body(22, _type),
    "items": _body(23, lambda v: _embedded(1, _schema(v))),
    "properties": _body(25, lambda v: _named(1, v, _schema)),
    "externalDocs": _body(29, lambda v: _message(_DOCS, 3, v)),
    "example": _body(30, _any),
}


# -- operations -------------------------------------------------------------------------------------------------------


def _path_item(found: Document) -> bytes:
    return _message(_PATH_ITEM, 10, found)


def _operation(found: Document) -> bytes:
    return _message(_OPERATION, 13, found)


def _parameter(found: Document) -> bytes:
    """ParametersItem {1: Parameter {1: body | 2: NonBodyParameter {3: in the query | 4: in the path}}}."""
    if found["in"] == "body":
        return _embedded(1, _embedded(1, _message(_BODY, 6, found)))
    query = found["in"] == "query"
    fields, number, extensions = (_QUERY, 3, 23) if query else (_PATH, 4, 22)
    return _embedded(1, _embedded(2, _embedded(number, _message(fields, extensions, found))))


def _response(found: Document) -> bytes:
    """ResponseValue {1: Response}, whose schema is a SchemaItem {1: Schema}."""
    return _embedded(1, _message(_RESPONSE, 5, found))


_QUERY = {
    "required": _integer(1),
    "in": _text(2),
    "description": _text(3),
    "name": _text(4),
    "type": _text(6),
    "uniqueItems": _integer(20),
}
_PATH = {
    "required": _integer(1),
    "in": _text(2),
    "description": _text(3),
    "name": _text(4),
    "type": _text(5),
    "uniqueItems": _integer(19),
}
_BODY = {
    "description": _text(1),
    "name": _text(2),
    "in": _text(3),
    "required": _integer(4),
    "schema": _body(5, _schema),
}
_RESPONSE = {"description": _text(1), "schema": _body(2, lambda v: _embedded(1, _schema(v)))}
_OPERATION = {
    "description": _text(3),
    "operationId": _text(5),
    "produces": _text(6, many=True),
    "consumes": _text(7, many=True),
    "parameters": _body(8, _parameter, many=True),
    "responses": _body(9, lambda v: _named(1, v, _response)),
    "schemes": _text(10, many=True),
    "deprecated": _integer(11),
}
_PATH_ITEM = {
    "get": _body(2, _operation),
    "put": _body(3, _operation),
    "post": _body(4, _operation),
    "delete": _body(5, _operation),
    "patch": _body(8, _operation),
    "parameters": _body(9, _parameter, many=True),
}
