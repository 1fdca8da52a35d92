"""Objects as the rows that `kubectl get` prints.

Kubernetes' own kinds have printers in code; custom resources show what their columns' JSON paths find. `printer` is for
callers that write envelopes themselves; `table` makes a whole one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import orjson

from apiserver.registry import jsonpath
from apiserver.registry.builtins import catalogue
from apiserver.registry.printers.base import Object, Printer, since
from apiserver.registry.served import Column, ServedKind

__all__ = ["Printer", "column_definitions", "printer", "row", "table"]

Cell = Callable[[Object], Any]

_NUMBERS = {"integer": (int,), "number": (int, float)}


def printer(kind: ServedKind) -> Printer:
    """Columns of a kind and what fills them. Raises StatusError never: a path that finds nothing gives null."""
    return _custom(kind.columns, kind.qualified) if kind.custom else catalogue.printer_of(kind.qualified)


@lru_cache(4096)
def _custom(columns: tuple[Column, ...], resource: str) -> Printer:
    entry = catalogue.ENTRIES.get(resource)
    special = entry.cells if entry is not None else {}
    cells = [special.get(column.name) or _cell(column) for column in columns]
    return Printer(columns, lambda obj: [cell(obj) for cell in cells])


def _cell(column: Column) -> Cell:
    if not column.path:
        return lambda obj: obj["metadata"].get("name", "")
    path = jsonpath.compile_path(column.path)
    return lambda obj: _shown(column.type, path.find(obj))


def _shown(kind: str, found: list[Any]) -> Any:
    """Matches as a cell of the column's type; null where there are none or where they are of another type."""
    if not found or found[0] is None:
        return None
    first = found[0]
    match kind:
        case "date":
            return _since(first)
        case "boolean":
            return first if isinstance(first, bool) else None
        case "integer" | "number":
            return _number(kind, first)
        case _:
            return ",".join(_text(value) for value in found)


def _since(value: Any) -> str | None:
    """A custom resource's time, as kube-apiserver tells whether it is one."""
    if not isinstance(value, str):
        return None
    ago = since(value)
    return "<invalid>" if ago == "<unknown>" else ago


def _number(kind: str, value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, _NUMBERS["number"]):
        return None
    return int(value) if kind == "integer" else value


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return orjson.dumps(value).decode()
    return str(value)


def column_definitions(kind: ServedKind) -> list[dict[str, Any]]:
    """As a Table carries them."""
    return [column.as_json() for column in printer(kind).columns]


def row(kind: ServedKind, obj: Object) -> list[Any]:
    """The cells of one object."""
    return printer(kind).cells(obj)


def table(
    kind: ServedKind, objects: Iterable[Object], *, include_object: str = "Metadata", list_meta: dict[str, Any]
) -> dict[str, Any]:
    """A meta.k8s.io/v1 Table. `include_object`: Metadata, Object or None, as the query parameter says."""
    shown = printer(kind)
    rows = [{"cells": shown.cells(obj), "object": _included(obj, include_object)} for obj in objects]
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": list_meta,
        "columnDefinitions": column_definitions(kind),
        "rows": rows,
    }


def _included(obj: Object, include: str) -> Object | None:
    if include == "Object":
        return obj
    if include == "None":
        return None
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
