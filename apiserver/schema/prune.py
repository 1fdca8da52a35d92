"""Dropping of fields that a schema does not know. Called through Schema.prune."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apiserver.schema.node import Node, Path, render

_Unknown = tuple[dict[str, Any], str, Path]
"""An unknown field: the object it stands in, its name, and where."""

_IMPLICIT = ("apiVersion", "kind", "metadata")
"""Known at the root of every object and of every embedded one, whatever the schema says."""


def prune(value: Any, node: Node, root: bool = True) -> list[str]:
    """Drops unknown fields in place; their paths, sorted. `root`: value is a whole object."""
    found = _found(value, node, root)
    for parent, key, _ in found:
        parent.pop(key, None)  # not twice, where YAML aliases made two fields one object
    return sorted(render(path) for *_, path in found)


def unknown(value: Any, node: Node, root: bool = True) -> list[str]:
    """What `prune` would drop."""
    return sorted(render(path) for *_, path in _found(value, node, root))


def _found(value: Any, node: Node, root: bool) -> list[_Unknown]:
    found: list[_Unknown] = []
    _walk(value, node, None, found, root)
    return found


def _walk(value: Any, node: Node, path: Path, found: list[_Unknown], root: bool = False) -> None:
    if value.__class__ is list:
        _walk_items(value, node, path, found)
        return
    if value.__class__ is not dict:
        return
    implicit = (root or node.embedded) and not node.builtin
    for key, item in value.items():
        if implicit and key in _IMPLICIT:
            continue
        child = node.properties.get(key, node.additional)
        if child is not None:
            if item.__class__ is dict or item.__class__ is list:
                _walk(item, child, (path, key), found)
        elif not node.preserve and not (root and key in _IMPLICIT):
            found.append((value, key, (path, key)))


def _walk_items(value: list[Any], node: Node, path: Path, found: list[_Unknown]) -> None:
    child = node.items
    if child is None and node.preserve:
        return
    for index, item in enumerate(value):
        if item.__class__ is dict or item.__class__ is list:
            _walk(item, child or _NOTHING, (path, index), found)


def embedded(value: Any, node: Node, path: Path = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects that are embedded in a value, each with its path."""
    if value.__class__ is list:
        for index, item in enumerate(value):
            if node.items is not None:
                yield from _embedded_in(item, node.items, (path, index))
    elif value.__class__ is dict:
        for key, item in value.items():
            child = node.child(key)
            if child is not None:
                yield from _embedded_in(item, child, (path, key))


def _embedded_in(value: Any, node: Node, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    if node.embedded and value.__class__ is dict:
        yield render(path), value
    yield from embedded(value, node, path)


_NOTHING = Node()
