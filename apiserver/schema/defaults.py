"""Defaults, nulls and whole floats: what a schema makes of an object before it is validated. Called through
Schema.default.

CRDs: a null that is neither nullable nor defaulted is dropped, then defaults are filled in, top down, so that a
defaulted struct gets the defaults of its own fields. Built-in kinds: null is absent, and a null inside a map or list
is the zero value, as in Go, and a field that Go leaves out of JSON where it is empty is left out.
"""

from __future__ import annotations

from typing import Any

from apiserver.schema.node import MISSING, Node

_ZEROS: dict[str, Any] = {"string": "", "integer": 0, "number": 0, "boolean": False}


def copy_json(value: Any) -> Any:
    """A deep copy of a JSON value."""
    if value.__class__ is dict:
        return {k: copy_json(v) for k, v in value.items()}
    if value.__class__ is list:
        return [copy_json(v) for v in value]
    return value


def default(value: Any, node: Node) -> None:
    """In place. Doing it twice is doing it once."""
    if value.__class__ is dict:
        _default_fields(value, node)
    elif value.__class__ is list and node.items is not None:
        child = node.items
        for index, item in enumerate(value):
            if item.__class__ is dict or item.__class__ is list:
                default(item, child)
            elif item is None or item.__class__ is float:
                value[index] = _settled(item, child)
                default(value[index], child)


def _default_fields(value: dict[str, Any], node: Node) -> None:
    properties, additional = node.properties, node.additional
    for key in node.defaulted:
        field = properties[key]
        if key not in value or (value[key] is None and not field.nullable):
            value[key] = copy_json(field.default)
    gone: list[str] = []
    omitted = node.omitted
    for key, item in value.items():
        if not item and key in omitted:
            gone.append(key)
            continue
        if item.__class__ is str or item.__class__ is int:
            continue
        child = properties.get(key) or additional
        if child is None:
            continue
        if item.__class__ is dict or item.__class__ is list:
            default(item, child)
        elif item is None and _drops_null(child, key in properties):
            gone.append(key)
        elif item is None or item.__class__ is float:
            value[key] = _settled(item, child)
            default(value[key], child)
    for key in gone:
        del value[key]


def _drops_null(child: Node, declared: bool) -> bool:
    if child.nullable or child.default is not MISSING:
        return False
    return declared or not child.builtin


def _settled(item: Any, child: Node) -> Any:
    """A null inside a map or list, or a float, as it is kept: JSON's 1.0 is the integer 1, as in Go."""
    if item is not None:
        return int(item) if item.is_integer() and abs(item) < 2**63 and "integer" in child.types else item
    if child.nullable:
        return None
    if child.default is not MISSING:
        return copy_json(child.default)
    if child.builtin and child.types:
        return _ZEROS.get(child.types[0]) if child.types[0] in _ZEROS else ({} if child.types[0] == "object" else None)
    return None
