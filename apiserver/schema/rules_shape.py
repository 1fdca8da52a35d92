"""The shape of a CRD's schema as data: what Go's decoder would refuse before any rule is looked at. Called by rules.py.

The other rules rely on it: after this, a schema is an object, `properties` a map of schemas, and so on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apiserver.model.errors import Cause
from apiserver.schema.messages import invalid

Json = dict[str, Any]

_MAPS = ("properties", "patternProperties", "definitions")
_LISTS = ("allOf", "anyOf", "oneOf")


def check(schema: Any, path: str) -> Iterator[Cause]:
    if not isinstance(schema, dict):
        yield invalid(path, schema, "must be a schema object")
        return
    for key in _MAPS:
        below = schema.get(key)
        if below is not None and not isinstance(below, dict):
            yield invalid(f"{path}.{key}", below, "must be an object")
        for name, child in below.items() if isinstance(below, dict) else ():
            yield from check(child, f"{path}.{key}[{name}]")
    for key in _LISTS:
        below = schema.get(key)
        if below is not None and not isinstance(below, list):
            yield invalid(f"{path}.{key}", below, "must be a list")
        for index, child in enumerate(below) if isinstance(below, list) else ():
            yield from check(child, f"{path}.{key}[{index}]")
    for key in ("items", "not"):
        if schema.get(key) is not None and not (key == "items" and isinstance(schema[key], list)):
            yield from check(schema[key], f"{path}.{key}")
    additional = schema.get("additionalProperties")
    if additional is not None and not isinstance(additional, bool):
        yield from check(additional, f"{path}.additionalProperties")
    yield from _scalars(schema, path)


_WANTED: dict[str, type | tuple[type, ...]] = {
    "type": str,
    "format": str,
    "pattern": str,
    "nullable": bool,
    "uniqueItems": bool,
    "exclusiveMinimum": bool,
    "exclusiveMaximum": bool,
    "required": list,
    "enum": list,
    "minimum": (int, float),
    "maximum": (int, float),
    "multipleOf": (int, float),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), int),
    "x-kubernetes-preserve-unknown-fields": bool,
    "x-kubernetes-int-or-string": bool,
    "x-kubernetes-embedded-resource": bool,
    "x-kubernetes-list-type": str,
    "x-kubernetes-map-type": str,
    "x-kubernetes-list-map-keys": list,
    "x-kubernetes-validations": list,
}


def _scalars(schema: Json, path: str) -> Iterator[Cause]:
    for key, wanted in _WANTED.items():
        value = schema.get(key)
        if value is not None and (not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool)):
            names = wanted.__name__ if isinstance(wanted, type) else "number"
            yield invalid(f"{path}.{key}", value, f"must be of type {names}")
    for key in ("required", "x-kubernetes-list-map-keys"):
        names_given = schema.get(key)
        if isinstance(names_given, list) and not all(isinstance(n, str) for n in names_given):
            yield invalid(f"{path}.{key}", names_given, "must be a list of names")
