"""The fields of Kubernetes' Go types, as their .proto files and JSON tags declare them (messages.json).

Read by the protobuf decoder, and by the schemas of built-in kinds: which zero values Go leaves out of JSON.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

import orjson

REPEATED, MAP, OMITEMPTY, POINTER, INLINE = 1, 2, 4, 8, 16
"""Flags of a field in the table."""


class MessageField(NamedTuple):
    """`type`: a scalar's name or a message's; of a map, its values'."""

    json: str
    type: str
    flags: int


@cache
def messages() -> dict[str, dict[int, MessageField]]:
    """Every message by name, its fields by number."""
    text = Path(__file__).with_suffix(".json").read_bytes()
    return {name: {n: MessageField(json, kind, flags) for n, json, kind, flags in fields}
            for name, fields in orjson.loads(text).items()}  # fmt: skip


@cache
def omitted() -> dict[str, frozenset[str]]:
    """By definition: the fields whose zero value (false, 0, "", no items) is not there in JSON. What Go keeps as a
    pointer is there, and so are structs."""
    return {name: frozenset(_omitted(name)) for name in messages()}


def _omitted(name: str) -> list[str]:
    found = []
    for field in messages()[name].values():
        if field.flags & INLINE:
            found += _omitted(field.type)
        elif field.flags & OMITEMPTY and not field.flags & POINTER and _has_zero(field):
            found.append(field.json)
    return found


def _has_zero(field: MessageField) -> bool:
    return bool(field.flags & (REPEATED | MAP)) or "." not in field.type
