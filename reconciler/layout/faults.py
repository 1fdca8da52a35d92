"""Faults of files as people read them. Private to the reading of files."""

from __future__ import annotations

from apiserver.kubeyaml.faults import Fault
from reconciler.layout.errors import LayoutError


def placed(fault: Fault, path: str) -> LayoutError:
    """With its file, line and column."""
    if fault.mark is None:
        return LayoutError(path, 0, 0, fault.message, fault.hint)
    return LayoutError(path, fault.line, fault.mark.column + 1, fault.message, fault.hint)


def type_name(value: object) -> str:
    """A JSON type in words, with its article."""
    if value is None:
        return "null"
    names = {dict: "a mapping", list: "a list", str: "text", bool: "a boolean", int: "an integer", float: "a number"}
    return names.get(type(value), "something else")
