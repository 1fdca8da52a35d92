"""Wrong JSON types in built-in kinds, in the words of Go's decoder. Called through Schema.decode_errors.

kube-apiserver refuses such an object before it looks at anything else, with 400 and the first of these.
"""

from __future__ import annotations

from typing import Any

from apiserver.schema.formats import is_base64, is_datetime
from apiserver.schema.messages import number, quote
from apiserver.schema.node import Node

_KINDS: dict[type, str] = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}
_SCALARS = {"string": "string", "boolean": "bool", "number": "float64"}


def decode_errors(value: Any, node: Node) -> list[str]:
    found: list[str] = []
    kind = value.get("kind") if isinstance(value, dict) else None
    _walk(value, node, _struct(node) or str(kind or ""), (), found)
    return found


def _struct(node: Node) -> str:
    return node.name.rpartition(".")[2]


def _walk(value: Any, node: Node, owner: str, fields: tuple[str, ...], found: list[str]) -> None:
    """`owner` is the innermost Go struct, `fields` the path below the root; list indexes do not show."""
    if value is None or not node.types:
        return
    if value.__class__ is dict and "object" in node.types:
        inner = (node.properties and _struct(node)) or owner
        for key, item in value.items():
            child = node.properties.get(key)
            if child is not None:
                if child.format or item.__class__ is not child.plain:
                    _walk(item, child, inner, (*fields, key), found)
            elif node.additional is not None:
                _walk(item, node.additional, owner, fields, found)
    elif value.__class__ is list and "array" in node.types:
        if node.items is not None:
            for item in value:
                _walk(item, node.items, owner, fields, found)
    else:
        problem = _scalar(value, node, owner, fields)
        if problem:
            found.append(problem)


def _scalar(value: Any, node: Node, owner: str, fields: tuple[str, ...]) -> str:
    if value.__class__ is str and "string" in node.types:
        return _text(value, node)
    if value.__class__ is bool and "boolean" in node.types:
        return ""
    if value.__class__ in (int, float) and ("number" in node.types or _fits(value, node)):
        return ""
    what = _KINDS[value.__class__]
    if "integer" in node.types and what == "number":
        what = f"number {number(value)}"
    if node.int_or_string:
        return f"json: cannot unmarshal {what} into Go value of type int32"
    where = f"Go struct field {owner}.{'.'.join(fields)}" if fields else "Go value"
    return f"json: cannot unmarshal {what} into {where} of type {_go_type(node)}"


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
    if node.format == "byte" and not is_base64(value):
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
