"""Dropping of fields that a schema does not know. Called through Schema.prune."""

from __future__ import annotations

from typing import Any

from apiserver.schema.node import Node, Path, render

_IMPLICIT = ("apiVersion", "kind", "metadata")
"""Known at the root of every object and of every embedded one, whatever the schema says."""


def prune(value: Any, node: Node, root: bool = True) -> list[str]:
    """Drops unknown fields in place; their paths, sorted. `root`: value is a whole object."""
    dropped: list[str] = []
    _prune(value, node, None, dropped, root)
    dropped.sort()
    return dropped


def _prune(value: Any, node: Node, path: Path, dropped: list[str], root: bool = False) -> None:
    if value.__class__ is list:
        _prune_items(value, node, path, dropped)
        return
    if value.__class__ is not dict:
        return
    unknown: list[str] = []
    implicit = (root or node.embedded) and not node.builtin
    for key, item in value.items():
        if implicit and key in _IMPLICIT:
            continue
        child = node.properties.get(key, node.additional)
        if child is not None:
            if item.__class__ is dict or item.__class__ is list:
                _prune(item, child, (path, key), dropped)
        elif not node.preserve and not (root and key in _IMPLICIT):
            unknown.append(key)
    for key in unknown:
        dropped.append(render((path, key)))
        del value[key]


def _prune_items(value: list[Any], node: Node, path: Path, dropped: list[str]) -> None:
    child = node.items
    if child is None and node.preserve:
        return
    for index, item in enumerate(value):
        if item.__class__ is dict or item.__class__ is list:
            _prune(item, child or _NOTHING, (path, index), dropped)


_NOTHING = Node()
