"""Rules for list types, map keys and map types. Called by rules.py for every node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apiserver.model.errors import Cause
from apiserver.schema.messages import forbidden, invalid, required, unsupported

Json = dict[str, Any]

LIST_TYPE = "x-kubernetes-list-type"
MAP_TYPE = "x-kubernetes-map-type"
MAP_KEYS = "x-kubernetes-list-map-keys"


def check(schema: Json, path: str) -> Iterator[Cause]:
    yield from _typed(schema, path, MAP_TYPE, "object", ["atomic", "granular"])
    yield from _typed(schema, path, LIST_TYPE, "array", ["atomic", "set", "map"])
    items = schema.get("items")
    if schema.get(LIST_TYPE) == "set" and isinstance(items, dict):
        yield from _set_items(items, path)
    if schema.get(MAP_KEYS) and schema.get(LIST_TYPE) != "map":
        why = f"must be map if {MAP_KEYS} is non-empty"
        at = f"{path}.{LIST_TYPE}"
        yield invalid(at, schema[LIST_TYPE], why) if schema.get(LIST_TYPE) else required(at, why)
    if schema.get(LIST_TYPE) == "map":
        yield from _map_items(schema, path)


def _typed(schema: Json, path: str, keyword: str, kind: str, allowed: list[str]) -> Iterator[Cause]:
    value = schema.get(keyword)
    if value is None:
        return
    if schema.get("type") != kind:
        why = f"must be {kind} if {keyword} is specified"
        at = f"{path}.type"
        yield invalid(at, schema["type"], why) if schema.get("type") else required(at, why)
    if value not in allowed:
        yield unsupported(f"{path}.{keyword}", value, allowed)


def _set_items(items: Json, path: str) -> Iterator[Cause]:
    why = f"must be atomic as item of a list with {LIST_TYPE}=set"
    if items.get("type") == "array" and items.get(LIST_TYPE) not in (None, "atomic"):
        yield invalid(f"{path}.items.{LIST_TYPE}", items[LIST_TYPE], why)
    if items.get("type") == "object" and items.get(MAP_TYPE) != "atomic":
        yield invalid(f"{path}.items.{MAP_TYPE}", items.get(MAP_TYPE), why)
    if items.get("nullable"):
        yield forbidden(f"{path}.items.nullable", f"cannot be nullable when {LIST_TYPE} is set")


def _map_items(schema: Json, path: str) -> Iterator[Cause]:
    keys: list[str] = schema.get(MAP_KEYS) or []
    items = schema.get("items")
    if not keys:
        yield required(f"{path}.{MAP_KEYS}", f"must not be empty if {LIST_TYPE} is map")
    if not isinstance(items, dict):
        if items is None:
            yield required(f"{path}.items", f"must have a schema if {LIST_TYPE} is map")
        return
    if items.get("type") != "object":
        why = f"must be object if parent array's {LIST_TYPE} is map"
        yield invalid(f"{path}.items.type", items.get("type") or "", why)
        return
    if items.get("nullable"):
        yield forbidden(f"{path}.items.nullable", f"cannot be nullable when {LIST_TYPE} is map")
    yield from _keys(keys, items, path)


def _keys(keys: list[str], items: Json, path: str) -> Iterator[Cause]:
    properties = items.get("properties") or {}
    for index, key in enumerate(keys):
        at = f"{path}.items.properties[{key}]"
        declared = properties.get(key)
        if declared is None:
            yield invalid(f"{path}.{MAP_KEYS}", keys, "entries must all be names of item properties")
        else:
            if declared.get("type") in ("array", "object"):
                why = f"must be a scalar type if parent array's {LIST_TYPE} is map"
                yield invalid(f"{at}.type", declared["type"], why)
            if declared.get("default") is None and key not in (items.get("required") or ()):
                why = f"this property is in {MAP_KEYS}, so it must have a default or be a required property"
                yield required(f"{at}.default", why)
            if declared.get("nullable"):
                why = f"this property is in {MAP_KEYS}, so it cannot be nullable"
                yield forbidden(f"{at}.nullable", why)
        if key in keys[:index]:
            yield invalid(f"{path}.{MAP_KEYS}", keys, "must not contain duplicate entries")
