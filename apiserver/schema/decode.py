"""Wrong JSON types in built-in kinds, in the words of Go. Called through Schema.decode_errors.

kube-apiserver refuses such an object before it looks at anything else, with the first of these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apiserver.schema.formats import is_base64, is_datetime
from apiserver.schema.messages import number, quote
from apiserver.schema.node import Node

_KINDS: dict[type, str] = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}
_GO_KINDS: dict[type, str] = {
    bool: "bool", int: "int64", float: "float64", str: "string", list: "slice", dict: "map",
}  # fmt: skip
_COMPOSITE = {"object": "map", "array": "slice"}
_SCALARS = {"string": "string", "boolean": "bool", "number": "float64"}


Words = Callable[[Any, Node, str, tuple[str, ...]], str]
"""What is wrong with a value at a field of a Go struct, whose name and path are given; "" if nothing is."""


def decode_errors(value: Any, node: Node, words: Words) -> list[str]:
    """`words`: DECODED or CONVERTED."""
    found: list[str] = []
    kind = value.get("kind") if isinstance(value, dict) else None
    _Walk(words, found).value(value, node, _struct(node) or str(kind or ""), ())
    return found


def _struct(node: Node) -> str:
    return node.name.rpartition(".")[2]


class _Walk:
    __slots__ = ("found", "words")

    def __init__(self, words: Words, found: list[str]) -> None:
        self.words = words
        self.found = found

    def value(self, value: Any, node: Node, owner: str, fields: tuple[str, ...]) -> None:
        """`owner` is the innermost Go struct, `fields` the path below the root; list indexes do not show."""
        if value is None or not node.types:
            return
        if value.__class__ is dict and "object" in node.types:
            inner = (node.properties and _struct(node)) or owner
            for key, item in value.items():
                child = node.properties.get(key)
                if child is not None:
                    if child.format or item.__class__ is not child.plain:
                        self.value(item, child, inner, (*fields, key))
                elif node.additional is not None:
                    self.value(item, node.additional, owner, fields)
        elif value.__class__ is list and "array" in node.types:
            if node.items is not None:
                for item in value:
                    self.value(item, node.items, owner, fields)
        else:
            problem = self.words(value, node, owner, fields)
            if problem:
                self.found.append(problem)


def _decoded(value: Any, node: Node, owner: str, fields: tuple[str, ...]) -> str:
    """In the words of encoding/json."""
    if value.__class__ is str and "string" in node.types:
        return _text(value, node)
    if _is_right(value, node):
        return ""
    what = _KINDS[value.__class__]
    if "integer" in node.types and what == "number":
        what = f"number {number(value)}"
    if node.int_or_string:
        return f"json: cannot unmarshal {what} into Go value of type int32"
    where = f"Go struct field {owner}.{'.'.join(fields)}" if fields else "Go value"
    return f"json: cannot unmarshal {what} into {where} of type {_go_type(node)}"


def _converted(value: Any, node: Node, owner: str, fields: tuple[str, ...]) -> str:
    """In the words of runtime.DefaultUnstructuredConverter. Types that read JSON themselves say the same as ever."""
    if node.int_or_string or node.format == "date-time" or (value.__class__ is str and "string" in node.types):
        return _decoded(value, node, owner, fields)
    if _is_right(value, node):
        return ""
    if node.types[0] in _COMPOSITE:
        what = "struct from:" if node.properties else f"{_COMPOSITE[node.types[0]]} from"
        return f"cannot restore {what} {_go_kind(value)}"
    if _is_convertible(value, node):
        return f"cannot convert {_go_kind(value)} to {_go_type(node)}"
    return f"unrecognized type: {_go_type(node)}"


DECODED: Words = _decoded
CONVERTED: Words = _converted


def _is_right(value: Any, node: Node) -> bool:
    if value.__class__ is bool:
        return "boolean" in node.types
    return value.__class__ in (int, float) and ("number" in node.types or _fits(value, node))


def _is_convertible(value: Any, node: Node) -> bool:
    """By Go's rules for types: among numbers, and from whole numbers to text."""
    if value.__class__ is int and "string" in node.types:
        return True
    return value.__class__ in (int, float) and ("number" in node.types or "integer" in node.types)


def _go_kind(value: Any) -> str:
    return _GO_KINDS[value.__class__]


def _fits(value: float, node: Node) -> bool:
    if "integer" not in node.types or (value.__class__ is float and not value.is_integer()):
        return False
    bits = 31 if node.format == "int32" or node.int_or_string else 63
    limit: int = 2**bits
    return -limit <= value < limit


def _text(value: str, node: Node) -> str:
    if node.format == "date-time" and not is_datetime(value):
        layout = "2006-01-02T15:04:05Z07:00"
        return f'parsing time {quote(value)} as "{layout}": cannot parse {quote(value)} as "2006"'
    if node.format == "byte" and not is_base64(value.replace("\r", "").replace("\n", "")):  # which Go ignores, too
        return "illegal base64 data at input byte 0"
    return ""


def _go_type(node: Node) -> str:
    kind = node.types[0] if node.types else ""
    if kind == "integer":
        return node.format or "int64"
    if kind == "array":
        return f"[]{_go_type(node.items)}" if node.items is not None else "[]interface {}"
    if kind == "object":
        if node.properties and node.name:
            return ".".join(node.name.split(".")[-2:])
        return f"map[string]{_go_type(node.additional)}" if node.additional is not None else "map[string]interface {}"
    if kind == "string" and node.format == "byte":
        return "[]uint8"
    return _SCALARS.get(kind, "interface {}")
