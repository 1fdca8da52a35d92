"""Checks of lists: items, counts, and the uniqueness that list types promise. Called by checks.py."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from apiserver.model.errors import Cause
from apiserver.schema.messages import as_json, duplicate, invalid, too_many
from apiserver.schema.node import Check, Node, Path, render

Json = dict[str, Any]


def steps(node: Node, raw: Json) -> list[Check]:
    out: list[Check] = []
    if node.items is not None:
        out.append(_items(node.items))
    low, high = raw.get("minItems"), raw.get("maxItems")
    if low is not None or high is not None:
        out.append(_count(low, high))
    if raw.get("uniqueItems"):
        out.append(_unique)
    if not node.builtin:  # Go code decides for built-in kinds; some of them allow repeated keys
        if node.list_type == "set":
            out.append(_set)
        elif node.list_type == "map":
            out.append(_map(node.map_keys))
    return out


def _items(child: Node) -> Check:
    def check(value: Any, path: Path, errors: list[Cause]) -> None:
        if value.__class__ is not list:
            return
        for index, item in enumerate(value):
            if item.__class__ is not child.plain:
                child.check(item, (path, index), errors)

    return check


def _count(low: int | None, high: int | None) -> Check:
    def check(value: Any, path: Path, errors: list[Cause]) -> None:
        if value.__class__ is not list:
            return
        if low is not None and len(value) < low:
            field = render(path)
            errors.append(invalid(field, len(value), f"{field} in body should have at least {low} items"))
        if high is not None and len(value) > high:
            errors.append(too_many(render(path), len(value), high))

    return check


def _identity(value: Any) -> Any:
    """Equal for equal JSON values; True is not 1."""
    return (value.__class__, as_json(value) if value.__class__ in (dict, list) else value)


def _repeated(values: Iterable[Any]) -> Iterable[int]:
    """The index of each value's second appearance."""
    seen: dict[Any, int] = {}
    for index, value in enumerate(values):
        key = _identity(value)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 2:
            yield index


def _unique(value: Any, path: Path, errors: list[Cause]) -> None:
    if value.__class__ is list and next(iter(_repeated(value)), None) is not None:
        field = render(path)
        errors.append(invalid(field, "", f"{field} in body shouldn't contain duplicates"))


def _set(value: Any, path: Path, errors: list[Cause]) -> None:
    if value.__class__ is list and len(value) > 1:
        errors.extend(duplicate(render((path, i)), value[i]) for i in _repeated(value))


def _map(keys: tuple[str, ...]) -> Check:
    def check(value: Any, path: Path, errors: list[Cause]) -> None:
        if value.__class__ is not list:
            return
        for index, item in enumerate(value):
            if item is not None and item.__class__ is not dict:
                why = "must be an object for an array of list-type map"
                errors.append(invalid(render((path, index)), item, why))
                return
        if len(value) > 1:
            entries = [{k: item[k] for k in keys if k in item} if item else {} for item in value]
            errors.extend(duplicate(render((path, i)), entries[i]) for i in _repeated(entries))

    return check
