"""Kubernetes' protobuf bodies, read into the objects that their JSON would give.

Typed Go clients send built-in kinds in this form and do not fall back to JSON when it is refused. Nothing is ever
encoded: a client decodes by the answer's Content-Type, which is JSON's. The decoder is driven by tables
(registry/facts/messages.py) that are distilled from Kubernetes' own definitions.

A body is `k8s\\0` and an Unknown {1: TypeMeta {1: apiVersion, 2: kind}, 2: raw}. Zero values of fields that Go does not
keep as pointers are always on the wire: those that its JSON leaves out are left out here.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import orjson

from apiserver.model import nesting
from apiserver.model.errors import bad_request
from apiserver.registry.facts.messages import INLINE, MAP, OMITEMPTY, POINTER, REPEATED, MessageField, messages

MAGIC = b"k8s\0"
_MAX_DEPTH = 200
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NOTHING = memoryview(b"")

Object = dict[str, Any]


class Malformed(Exception):
    """The bytes are no message of the kind."""


@cache
def _kinds() -> dict[tuple[str, str, str], str]:
    """Message names by (first label of the group, version, kind)."""
    found = {}
    for name in messages():
        *_, package, version, kind = name.split(".")
        found[package, version, kind] = name
    return found


def decode(body: bytes) -> Object:
    """Raises StatusError 400."""
    if not body.startswith(MAGIC):
        raise bad_request("the body is not of Kubernetes' protobuf form: it does not begin with its mark")
    try:
        unknown = _by_number(memoryview(body)[len(MAGIC) :])
        meta = _by_number(_data(unknown.get(1, _NOTHING)))
        api_version, kind = _text(meta.get(1, _NOTHING)), _text(meta.get(2, _NOTHING))
        found = _message(_data(unknown.get(2, _NOTHING)), _message_of(api_version, kind), 0)
        if nesting.too_deep(found):
            raise Malformed(f"it is nested more than {nesting.DEPTH} levels deep")
    except (Malformed, ValueError, TypeError, IndexError, struct.error, OverflowError) as error:
        raise bad_request(f"the protobuf body cannot be read: {error}") from None
    except RecursionError:
        raise bad_request("the protobuf body cannot be read: it is nested too deeply") from None
    return {"apiVersion": api_version, "kind": kind, **found}


def _message_of(api_version: str, kind: str) -> str:
    group, _, version = api_version.rpartition("/")
    package = group.partition(".")[0] or "core"
    name = _kinds().get((package, version, kind)) or _kinds().get(("meta", "v1", kind))
    if name is None:
        raise Malformed(f"no kind {kind!r} in {api_version!r} has a protobuf form")
    return name


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80 and value < 1 << 64:
            return value, at
        shift += 7
        if shift > 63:
            raise Malformed("a number is too long")


def _data(raw: Any) -> memoryview:
    """Of a field that has a length. Python would take a number for as many zeros."""
    if not isinstance(raw, memoryview):
        raise Malformed("a field is of the wrong wire type")
    return raw


def _text(raw: Any) -> str:
    return bytes(_data(raw)).decode()


def _whole(raw: Any, bits: int = 64) -> int:
    """Of a signed number: negative ones are on the wire with 64 bits, whatever they have in Go."""
    if not isinstance(raw, int):
        raise Malformed("a field is of the wrong wire type")
    value = raw - (1 << 64) if raw >= 1 << 63 else raw
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise Malformed(f"a number has more than {bits} bits")
    return value


def _fields(data: memoryview) -> Iterator[tuple[int, Any]]:
    """Number and raw value of each field in order: an int, a float, or what has a length."""
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        wire = tag & 7
        value: Any
        if wire == 0:
            value, at = _varint(data, at)
        elif wire == 2:
            size, at = _varint(data, at)
            if at + size > end:
                raise Malformed("a field ends behind its message")
            value = data[at : at + size]
            at += size
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            value = struct.unpack("<d" if wire == 1 else "<f", data[at : at + size])[0]
            at += size
        else:
            raise Malformed(f"unknown wire type {wire}")
        yield tag >> 3, value


def _message(data: memoryview, name: str, depth: int) -> Any:
    special = _SPECIAL.get(name.rpartition(".")[2])
    if special is not None:
        return special(data, name, depth)
    if depth > _MAX_DEPTH:
        raise Malformed("it is nested too deeply")
    table = messages()[name]
    out: Object = {}
    for number, raw in _fields(data):
        field = table.get(number)
        if field is None:
            continue
        if field.flags & MAP:
            key, value = _entry(_data(raw), field.type, depth)
            out.setdefault(field.json, {})[key] = value
            continue
        value = _value(raw, field.type, depth)
        if field.flags & INLINE:
            out.update(value)
        elif field.flags & REPEATED:
            out.setdefault(field.json, []).append(value)
        elif _printed(field, value):
            out[field.json] = value
    return out


def _printed(field: MessageField, value: Any) -> bool:
    """Whether Go's JSON has the field: an absent time never, a zero only if it was set on purpose."""
    if value is None:
        return False
    if field.flags & POINTER or not field.flags & OMITEMPTY:
        return True
    return value not in ("", 0, False) or isinstance(value, dict)


def _entry(data: memoryview, kind: str, depth: int) -> tuple[str, Any]:
    """A map's entry: {1: key, 2: value}."""
    key, value = "", _value(_NOTHING, kind, depth) if "." in kind or kind in ("string", "bytes") else None
    for number, raw in _fields(data):
        if number == 1:
            key = _text(raw)
        else:
            value = _value(raw, kind, depth)
    return key, value


def _value(raw: Any, kind: str, depth: int) -> Any:
    match kind:
        case "string":
            return _text(raw)
        case "bool":
            return bool(_whole(raw))
        case "bytes":
            return base64.b64encode(_data(raw)).decode()
        case "double" | "float":
            if not isinstance(raw, float):
                raise Malformed("a field is of the wrong wire type")
            return raw
        case _ if "." in kind:
            return _message(_data(raw), kind, depth + 1)
        case _:
            return _whole(raw, 32 if kind == "int32" else 64)


def _by_number(data: memoryview) -> dict[int, Any]:
    return dict(_fields(data))


def _moment(data: memoryview) -> datetime | None:
    found = _by_number(data)
    seconds, nanos = _whole(found.get(1, 0)), _whole(found.get(2, 0), 32)
    if 1 not in found and not nanos:
        return None
    if seconds < -62135596800 or (seconds == -62135596800 and not nanos):
        return None
    return _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)


def _time(data: memoryview, _: str, __: int) -> str | None:
    at = _moment(data)
    return _written(at, "seconds") if at else None


def _micro_time(data: memoryview, _: str, __: int) -> str | None:
    at = _moment(data)
    return _written(at, "microseconds") if at else None


def _written(at: datetime, precision: str) -> str:
    """strftime would write the year 1 as one digit."""
    return at.replace(tzinfo=None).isoformat(timespec=precision) + "Z"


def _quantity(data: memoryview, _: str, __: int) -> str:
    return _text(_by_number(data).get(1, _NOTHING)) or "0"


def _int_or_string(data: memoryview, _: str, depth: int) -> Any:
    found = _by_number(data)
    if found.get(1):
        return _text(found.get(3, _NOTHING))
    return _value(found.get(2, 0), "int32", depth)


def _raw_json(data: memoryview, _: str, __: int) -> Any:
    raw = bytes(_data(_by_number(data).get(1, _NOTHING)))
    if not raw:
        return None
    return decode(raw) if raw.startswith(MAGIC) else orjson.loads(raw)


def _items(data: memoryview, _: str, __: int) -> list[str]:
    return [_text(value) for number, value in _fields(data) if number == 1]


def _schema(raw: Any, name: str, depth: int) -> Any:
    return _message(_data(raw), name.rpartition(".")[0] + ".JSONSchemaProps", depth + 1)


def _schema_or_list(data: memoryview, name: str, depth: int) -> Any:
    found = list(_fields(data))
    schemas = [_schema(value, name, depth) for number, value in found if number == 2]
    single = [_schema(value, name, depth) for number, value in found if number == 1]
    return schemas or (single[0] if single else None)


def _schema_or_bool(data: memoryview, name: str, depth: int) -> Any:
    found = _by_number(data)
    return _schema(found[2], name, depth) if 2 in found else bool(found.get(1))


def _schema_or_strings(data: memoryview, name: str, depth: int) -> Any:
    found = list(_fields(data))
    strings = [_text(value) for number, value in found if number == 2]
    single = [_schema(value, name, depth) for number, value in found if number == 1]
    return strings or (single[0] if single else None)


_SPECIAL: dict[str, Callable[[memoryview, str, int], Any]] = {
    "Time": _time,
    "MicroTime": _micro_time,
    "Quantity": _quantity,
    "IntOrString": _int_or_string,
    "FieldsV1": _raw_json,
    "JSON": _raw_json,
    "RawExtension": _raw_json,
    "ExtraValue": _items,
    "Verbs": _items,
    "JSONSchemaPropsOrArray": _schema_or_list,
    "JSONSchemaPropsOrBool": _schema_or_bool,
    "JSONSchemaPropsOrStringArray": _schema_or_strings,
}
