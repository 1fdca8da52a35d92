"""Protobuf bodies against an encoder: objects of every message are written as Go writes them and read back.

The encoder knows the wire (varints, lengths, fixed 64 bits) and what is special about a few messages; which fields
there are it takes from the same tables as the decoder. What is on the wire and not in the JSON (zeros of fields that
are left out) is added at random.
"""

from __future__ import annotations

import base64
import random
import struct
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.endpoints import protobuf
from apiserver.model.errors import StatusError
from apiserver.registry.facts.messages import INLINE, MAP, OMITEMPTY, POINTER, REPEATED, MessageField, messages
from apiserver.registry.kinds import kubernetes_builtins

DEPTH = 5
SCHEMAS = {"JSONSchemaPropsOrArray", "JSONSchemaPropsOrBool", "JSONSchemaPropsOrStringArray"}


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def tagged(number: int, value: bytes | int | float) -> bytes:
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


class Maker:
    """Makes a random object of a message together with its bytes."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def message(self, name: str, depth: int = 0) -> tuple[Any, bytes]:
        special = getattr(self, f"_{name.rpartition('.')[2]}", None)
        if special is not None:
            return special(name, depth)  # type: ignore[no-any-return]
        found: dict[str, Any] = {}
        parts: list[bytes] = []
        for number, field in messages()[name].items():
            if field.flags & INLINE:
                if field.json not in found and depth < DEPTH:
                    value, data = self.message(field.type, depth + 1)
                    if not found.keys() & value.keys():
                        found.update(value)
                        parts.append(tagged(number, data))
                continue
            if field.json in found or self.chance.random() < 0.5 + depth * 0.1:
                continue
            parts.append(self._field(number, field, found, depth))
        self.chance.shuffle(parts)
        return found, b"".join(parts)

    def _field(self, number: int, field: MessageField, found: dict[str, Any], depth: int) -> bytes:
        if "." in field.type and depth >= DEPTH:
            return b""
        if field.flags & MAP:
            pairs = {f"k{i}": self._value(field.type, depth) for i in range(self.chance.randint(1, 2))}
            found[field.json] = {key: value for key, (value, _) in pairs.items()}
            return b"".join(tagged(number, tagged(1, k.encode()) + tagged(2, d)) for k, (_, d) in pairs.items())
        if field.flags & REPEATED:
            values = [self._value(field.type, depth) for _ in range(self.chance.randint(1, 2))]
            found[field.json] = [value for value, _ in values]
            return b"".join(tagged(number, data) for _, data in values)
        if self.chance.random() < 0.2 and field.type in ("string", "int32", "int64", "bool"):
            zero: Any = {"string": "", "bool": False}.get(field.type, 0)
            if field.flags & POINTER or not field.flags & OMITEMPTY:
                found[field.json] = zero
            return tagged(number, b"" if field.type == "string" else 0)
        value, data = self._value(field.type, depth)
        if value is not None:
            found[field.json] = value
        return tagged(number, data)

    def _value(self, kind: str, depth: int) -> tuple[Any, Any]:
        chance = self.chance
        match kind:
            case "string":
                text = chance.choice(["a", "é", "x y", '"', "\U0001f600"])
                return text, text.encode()
            case "bytes":
                data = chance.randbytes(chance.randint(1, 9))
                return base64.b64encode(data).decode(), data
            case "bool":
                return True, 1
            case "double" | "float":
                number = chance.choice([1.5, -2.25, 1e300])
                return number, number
            case _ if "." in kind:
                return self.message(kind, depth + 1)
        whole = chance.choice([1, -1, 127, 128, 2**31 - 1, -(2**31)] + ([2**63 - 1] if kind == "int64" else []))
        return whole, whole

    def _Time(self, _: str, __: int) -> tuple[Any, bytes]:
        at = self.chance.choice([1, 1767225600, 253402300799, -62135596799])
        text = datetime.fromtimestamp(at, UTC).replace(tzinfo=None).isoformat() + "Z"
        return text, tagged(1, at) + self.chance.choice([b"", tagged(2, 0)])

    def _MicroTime(self, _: str, __: int) -> tuple[Any, bytes]:
        return "2026-01-01T00:00:00.000123Z", tagged(1, 1767225600) + tagged(2, 123_000)

    def _Quantity(self, _: str, __: int) -> tuple[Any, bytes]:
        text = self.chance.choice(["1", "100m", "1Gi"])
        return text, tagged(1, text.encode())

    def _IntOrString(self, _: str, __: int) -> tuple[Any, bytes]:
        if self.chance.random() < 0.5:
            return "http", tagged(1, 1) + tagged(2, 0) + tagged(3, b"http")
        return 80, tagged(1, 0) + tagged(2, 80) + tagged(3, b"")

    def _raw(self, _: str, __: int) -> tuple[Any, bytes]:
        value = {"f:a": {".": {}}, "x": [1, "é"]}
        return value, tagged(1, orjson.dumps(value))

    _FieldsV1 = _JSON = _RawExtension = _raw

    def _items(self, _: str, __: int) -> tuple[Any, bytes]:
        return ["a", ""], tagged(1, b"a") + tagged(1, b"")

    _ExtraValue = _Verbs = _items

    def _schema(self, name: str, depth: int) -> tuple[Any, bytes]:
        return self.message(name.rpartition(".")[0] + ".JSONSchemaProps", max(depth, DEPTH))

    def _JSONSchemaPropsOrArray(self, name: str, depth: int) -> tuple[Any, bytes]:
        value, data = self._schema(name, depth)
        return ([value], tagged(2, data)) if self.chance.random() < 0.5 else (value, tagged(1, data))

    def _JSONSchemaPropsOrBool(self, name: str, depth: int) -> tuple[Any, bytes]:
        if self.chance.random() < 0.5:
            return True, tagged(1, 1)
        value, data = self._schema(name, depth)
        return value, tagged(1, 1) + tagged(2, data)

    def _JSONSchemaPropsOrStringArray(self, name: str, depth: int) -> tuple[Any, bytes]:
        if self.chance.random() < 0.5:
            return ["a", "b"], tagged(2, b"a") + tagged(2, b"b")
        value, data = self._schema(name, depth)
        return value, tagged(1, data)


def body(api_version: str, kind: str, raw: bytes) -> bytes:
    meta = tagged(1, api_version.encode()) + tagged(2, kind.encode())
    return b"k8s\0" + tagged(1, meta) + tagged(2, raw) + tagged(3, b"") + tagged(4, b"")


def kinds() -> list[tuple[str, str, str]]:
    """API version, kind and message of everything that is served and has a protobuf form."""
    found = []
    for kind in kubernetes_builtins().all():
        package = kind.group.partition(".")[0] or "core"
        end = f".{package}.{kind.version}.{kind.kind}"
        found += [(kind.api_version, kind.kind, name) for name in messages() if name.endswith(end)]
    return found


KINDS = kinds()


def test_everything_that_is_served_has_a_protobuf_form() -> None:
    assert len({kind for _, kind, _ in KINDS}) > 60


@settings(max_examples=600)
@given(st.sampled_from(KINDS), st.integers(0, 1 << 32))
def test_what_is_encoded_is_decoded(kind: tuple[str, str, str], seed: int) -> None:
    api_version, name, message = kind
    value, raw = Maker(seed).message(message)
    found = protobuf.decode(body(api_version, name, raw))
    assert found == {"apiVersion": api_version, "kind": name, **value}
    orjson.dumps(found)


@settings(max_examples=600)
@given(st.sampled_from(KINDS), st.integers(0, 1 << 32), st.data())
def test_damage_is_refused_or_read(kind: tuple[str, str, str], seed: int, data: Any) -> None:
    api_version, name, message = kind
    damaged = bytearray(body(api_version, name, Maker(seed).message(message)[1]))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(4, len(damaged) - 1))
        match data.draw(st.sampled_from(["flip", "cut", "grow"])):
            case "flip":
                damaged[at] ^= 1 << data.draw(st.integers(0, 7))
            case "cut" if len(damaged) > 8:
                del damaged[at:]
            case _:
                damaged[at:at] = data.draw(st.binary(max_size=4))
        if len(damaged) < 6:
            break
    try:
        orjson.dumps(protobuf.decode(bytes(damaged)))
    except StatusError as error:
        assert error.code == 400


def test_a_number_of_more_than_64_bits_is_refused() -> None:
    """Ten bytes have room for 70. JSON could not say it."""
    generation = b"\x38" + b"\xff" * 9 + b"\x02"
    for raw in (tagged(1, generation), b"\x78" + b"\xff" * 9 + b"\x7f"):
        with pytest.raises(StatusError, match="a number is too long") as raised:
            protobuf.decode(body("v1", "ConfigMap", raw))
        assert raised.value.code == 400


@pytest.mark.parametrize(
    "raw",
    [
        tagged(1, tagged(1, 1 << 34)),  # a name
        tagged(2, 1 << 34),  # a map's entry
        tagged(2, tagged(1, 1 << 34)),  # its key
        tagged(1, 1 << 34),  # metadata
        tagged(1, tagged(7, 1.5)),  # generation
        tagged(1, tagged(7, b"1")),
        tagged(1, tagged(8, tagged(1, 1.5))),  # seconds of a time
    ],
)
def test_a_field_of_another_wire_type_is_refused(raw: bytes) -> None:
    """Above all not taken for as many bytes as the number says."""
    with pytest.raises(StatusError, match="of the wrong wire type") as raised:
        protobuf.decode(body("v1", "ConfigMap", raw))
    assert raised.value.code == 400


def test_the_envelope_is_looked_at_as_closely() -> None:
    for raw in (tagged(1, 1 << 34), tagged(1, tagged(1, 1 << 34)), tagged(2, 1 << 34)):
        with pytest.raises(StatusError, match="of the wrong wire type"):
            protobuf.decode(protobuf.MAGIC + raw)


@pytest.mark.parametrize("levels", [150, 5_000, 50_000])
def test_nesting_ends_somewhere(levels: int) -> None:
    schema = b""
    for _ in range(levels):
        schema = tagged(29, tagged(1, b"a") + tagged(2, schema))[:100_000]
    wrapped = tagged(2, tagged(7, tagged(1, b"v1") + tagged(4, tagged(1, schema))))
    with pytest.raises(StatusError) as raised:
        protobuf.decode(body("apiextensions.k8s.io/v1", "CustomResourceDefinition", wrapped))
    assert raised.value.code == 400


def test_a_body_in_a_body_in_a_body() -> None:
    inner = body("v1", "ConfigMap", b"")
    for _ in range(500):
        inner = body("apps/v1", "ControllerRevision", tagged(2, tagged(1, inner)))
    with pytest.raises(StatusError) as raised:
        protobuf.decode(inner)
    assert raised.value.code == 400
