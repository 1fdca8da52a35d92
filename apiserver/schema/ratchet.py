"""Ratcheting: what was wrong with a stored object before, and was not touched, does not stand in the way of a change.

A definition's schema may become stricter than objects that are stored; whoever changes something else in one of these
must still be able to. Called through Schema.validate, for objects that have errors only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apiserver.model.errors import Cause
from apiserver.schema.messages import as_json
from apiserver.schema.node import Node, Path


def new_errors(root: Node, old: Any, new: Any, path: Path, errors: list[Cause]) -> list[Cause]:
    """Those of `errors`, which are all of `new`, that no unchanged part of it has by itself."""
    excused: list[Cause] = []
    for node, value, at in _unchanged(root, old, new, path):
        node.check(value, at, excused)
    return [error for error in errors if error not in excused]


def _unchanged(node: Node, old: Any, new: Any, path: Path) -> Iterator[tuple[Node, Any, Path]]:
    """The largest parts of `new` that are as they were, where a part of `old` is known to be the same: fields and map
    values by their name, items of lists of type `map` by their keys, of other lists never."""
    if as_json(old) == as_json(new):
        yield node, new, path
    elif old.__class__ is dict and new.__class__ is dict:
        for key, value in new.items():
            child = node.child(key)
            if child is not None and key in old:
                yield from _unchanged(child, old[key], value, (path, key))
    elif node.list_type == "map" and node.items is not None and old.__class__ is list and new.__class__ is list:
        before = {_keys(node, item): item for item in old}
        for index, item in enumerate(new):
            keys = _keys(node, item)
            if keys in before:
                yield from _unchanged(node.items, before[keys], item, (path, index))


def _keys(node: Node, item: Any) -> str:
    return as_json([item.get(key) for key in node.map_keys] if item.__class__ is dict else item)
