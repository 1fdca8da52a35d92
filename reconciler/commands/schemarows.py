"""The fields of an object as rows of a table, from its schema: structural OpenAPI, as definitions have it, or JSON
Schema, as repo-layout/schemas. Called by kindspage.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

Schema = dict[str, Any]

_SELECTOR = {"matchLabels", "matchExpressions"}
_CONDITION = {"type", "status", "reason"}
_TYPES = {str: "string", bool: "boolean", int: "integer"}
_BOUNDS = (
    ("minLength", "at least {} characters"),
    ("maxLength", "at most {} characters"),
    ("minItems", "at least {} of them"),
    ("maxItems", "at most {} of them"),
    ("minimum", "at least {}"),
    ("maximum", "at most {}"),
)
_ONE = {"at least 1 characters": "not empty", "at least 1 of them": "at least one"}

HEADS = ("field", "type", "default", "allowed", "meaning")


class FieldRow(NamedTuple):
    field: str
    type: str
    default: str
    allowed: str
    meaning: str


def rows(schema: Schema, within: str = "") -> Iterator[FieldRow]:
    """All below an object, in the schema's order; what every object has is left out by the caller. A list of conditions
    and a selector of labels, which many have, are one row each."""
    for name, said in (schema.get("properties") or {}).items():
        path = f"{within}{name}"
        default = "required" if name in schema.get("required", ()) else _default(said)
        yield FieldRow(f"`{path}`", _type(said), default, _allowed(said), str(said.get("description", "")))
        inner = said.get("items") or said
        if not _is_known(inner):
            yield from rows(inner, f"{path}[]." if "items" in said else f"{path}.")


def undescribed(schema: Schema) -> list[str]:
    """Fields of which nothing is said."""
    return [row.field for row in rows(schema) if not row.meaning]


def _is_known(schema: Schema) -> bool:
    names = set(schema.get("properties") or ())
    return names == _SELECTOR or names >= _CONDITION


def _type(said: Schema) -> str:
    if "items" in said:
        return f"list of {_several(_type(said['items']))}"
    more = said.get("additionalProperties")
    if isinstance(more, dict):
        return f"map of {_several(_type(more))}"
    if said.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if set(said.get("properties") or ()) == _SELECTOR:
        return "label selector"
    found = str(said.get("type") or next((_TYPES[type(value)] for value in _values(said)), "anything"))
    return f"{found} ({said['format']})" if said.get("format") == "date-time" else found


def _several(name: str) -> str:
    return "integers or strings" if " or " in name else f"{name}s"


def _default(said: Schema) -> str:
    if "default" not in said:
        return ""
    default = said["default"]
    shown = default if isinstance(default, str) and default else json.dumps(default)
    return f"`{shown}`"


def _allowed(said: Schema) -> str:
    values = _values(said) or _values(said.get("items") or {})
    if values:
        return ", ".join(f"`{value}`" if value != "" else "empty" for value in values)
    of = {**(said.get("items") or {}), **said}
    told = [text.format(of[key]) for key, text in _BOUNDS if key in of]
    told = [_ONE.get(each, each) for each in told]
    return ", ".join([*told, *([f"`{of['pattern']}`"] if "pattern" in of else [])])


def _values(said: Schema) -> list[Any]:
    return [said["const"]] if "const" in said else list(said.get("enum") or ())
