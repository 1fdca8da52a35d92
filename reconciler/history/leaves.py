"""An object as the fields that a file sets: each leaf with its name, its place in the file, and its value. Pure.

Called by blame and copies. Items of lists are told apart by what their kind's schema says, where there is one; else by
what tells them apart in Kubernetes' lists (plan/listitems), as a review does; else by their place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from apiserver.schema.node import MISSING, Node
from reconciler.plan.listitems import Key, key_of

Object = dict[str, Any]


class DeclaredLeaf(NamedTuple):
    """`field`: as people write it, `spec.containers[name=web].image`; `place`: as layout/yamldoc finds it,
    `spec.containers[0].image`; `value`: JSON, never a map or a list with something in it."""

    field: str
    place: str
    value: Any


class Leaves:
    """Of one object in its versions: what told the items of a list apart in the first that is asked about does so in
    all of them, else a field would have several names."""

    def __init__(self, schema: Node | None) -> None:
        self._schema = schema
        self._keys: dict[str, Key | None] = {}

    def of(self, value: Object) -> dict[str, DeclaredLeaf]:
        """By field, in the order of the file."""
        return {leaf.field: leaf for leaf in self._walk(("", ""), value, self._schema)}

    def _walk(self, at: tuple[str, str], value: Any, node: Node | None) -> Iterator[DeclaredLeaf]:
        if isinstance(value, dict) and value:
            for key, part in value.items():
                yield from self._walk(
                    (_step(at[0], key), _step(at[1], key)), part, node.child(key) if node is not None else None
                )
        elif isinstance(value, list) and value:
            yield from self._items(at, value, node)
        else:
            yield DeclaredLeaf(*at, value)

    def _items(self, at: tuple[str, str], items: list[Any], node: Node | None) -> Iterator[DeclaredLeaf]:
        field, place = at
        names = self._names(field, items, node)
        if names is None:
            yield DeclaredLeaf(field, place, items)
            return
        below = node.items if node is not None else None
        for number, (name, item) in enumerate(zip(names, items, strict=True)):
            yield from self._walk((f"{field}[{name}]", f"{place}[{number}]"), item, below)

    def _names(self, field: str, items: list[Any], node: Node | None) -> list[str] | None:
        """None where what tells the items apart does not do so here: then the list is one leaf."""
        if field not in self._keys:
            self._keys[field] = _key(items, node)
        key = self._keys[field]
        if key is None:
            return [str(number) for number in range(len(items))]
        if not key:
            found = [str(item) for item in items]
        else:
            defaults = _defaults(key, node)
            found = [_name({**defaults, **item}, key) if isinstance(item, dict) else "" for item in items]
        return found if all(found) and len(set(found)) == len(found) else None


def _key(items: list[Any], node: Node | None) -> Key | None:
    """(): the items are their own names; None: nothing tells them apart."""
    if node is not None and node.list_type == "map" and all(isinstance(item, dict) for item in items):
        return node.map_keys
    if node is not None and node.list_type == "set" and all(isinstance(item, str) for item in items):
        return ()
    return key_of(items)


def _defaults(key: Key, node: Node | None) -> Object:
    """What a part of the key is where an item leaves it out."""
    fields = node.items.properties if node is not None and node.items is not None else {}
    return {part: fields[part].default for part in key if part in fields and fields[part].default is not MISSING}


def _name(item: Object, key: Key) -> str:
    return ",".join(f"{part}={item[part]}" for part in key if part in item)


def _step(at: str, key: str) -> str:
    plain = bool(key) and all(c.isalnum() or c in "-_" for c in key)
    return f"{at}[{key}]" if not plain else f"{at}.{key}" if at else key
