"""How a schema makes a value fall into fields: which maps and lists are merged field by field, and by what keys.

Read by the walks of field ownership (typed_walk.py). Maps are granular unless the schema says atomic; lists are atomic
unless the schema says set or map. What no schema describes is deduced: maps granular, lists atomic.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from apiserver.schema.compile import Compiler
from apiserver.schema.fieldset import as_json
from apiserver.schema.node import MISSING, Absence, Node
from apiserver.schema.objectmeta import OBJECT_META

_META = Compiler(builtin=True).compile(OBJECT_META)
_TEXT = Compiler(builtin=True).compile({"type": "string"})
_DEDUCED = Node()
_DEDUCED.preserve = True

_objects: WeakKeyDictionary[Node, Node] = WeakKeyDictionary()


def of_object(node: Node) -> Node:
    """The node of a whole object: apiVersion, kind and ObjectMeta are known, whatever the schema says of them."""
    if _is_complete(node):
        return node
    known = _objects.get(node)
    if known is None:
        known = _objects[node] = _completed(node)
    return known


def _has_meta(node: Node | None) -> bool:
    return node is not None and "finalizers" in node.properties


def _is_complete(node: Node) -> bool:
    return "apiVersion" in node.properties and _has_meta(node.properties.get("metadata"))


def _completed(node: Node) -> Node:
    full = Node()
    full.types, full.additional, full.preserve = ("object",), node.additional, node.preserve or not node.properties
    declared = node.properties.get("metadata")
    metadata = declared if declared is not None and _has_meta(declared) else _META
    full.properties = {**node.properties, "apiVersion": _TEXT, "kind": _TEXT, "metadata": metadata}
    return full


def field(node: Node, key: str) -> Node | None:
    """The node of a map's field; None where the schema has no such field."""
    child = node.properties.get(key) or node.additional
    if child is None:
        return _DEDUCED if node.preserve or not node.properties else None
    return of_object(child) if child.embedded else child


def item(node: Node) -> Node:
    """The node of a list's items."""
    child = node.items
    if child is None:
        return _DEDUCED
    return of_object(child) if child.embedded else child


def is_map(node: Node, value: Any) -> bool:
    """Whether `value` is owned field by field."""
    return value.__class__ is dict and node.map_type != "atomic" and (not node.types or "object" in node.types)


def is_list(node: Node, value: Any) -> bool:
    """Whether `value` is owned item by item (which needs every item to have its key; see `entries`)."""
    return value.__class__ is list and node.list_type in ("set", "map")


def entry(node: Node, value: Any) -> str | None:
    """The fieldset entry of a list's item; None for an item that has no identity in such a list."""
    if node.list_type == "set":
        return None if value is None or value.__class__ in (dict, list) else "v:" + as_json(value)
    if value.__class__ is not dict:
        return None
    keys = {}
    for name in node.map_keys:
        found = value.get(name, MISSING)
        if found is MISSING:
            found = _key_default(node, name)
        if found is not MISSING:
            keys[name] = found
    return "k:" + as_json(keys) if keys else None


def _key_default(node: Node, name: str) -> Any | Absence:
    declared = node.items.properties.get(name) if node.items is not None else None
    return declared.default if declared is not None else MISSING


def entries(node: Node, values: list[Any]) -> list[str] | None:
    """The entries of all items; None if some item has none: such a list counts as atomic."""
    found = []
    for value in values:
        name = entry(node, value)
        if name is None:
            return None
        found.append(name)
    return found
