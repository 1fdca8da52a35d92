"""Objects as YAML that a person would have written: blocks, one line a scalar, texts of several lines as they are.

Called by edit and patch for what is new in a file.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from reconciler.layout.quoting import as_json, literal, scalar

Object = dict[str, Any]

_FIRST = ("apiVersion", "kind", "metadata")
_FIRST_OF_METADATA = ("name", "namespace")
_LONGEST_KEY = 1000
"""Characters up to which a key may stand without a question mark (YAML: 1024)."""
_SHORT_KEY = 64
"""Characters up to which it is remembered how a key is written."""


def dump(value: Object) -> bytes:
    """One manifest: apiVersion, kind and metadata first, everything else in the order given."""
    return ("\n".join(mapping(ordered(value), 0)) + "\n").encode() if value else b"{}\n"


def ordered(value: Object) -> Object:
    """An object with its keys in the order in which people write them."""
    out = _with_first(value, _FIRST)
    metadata = out.get("metadata")
    if isinstance(metadata, dict):
        out["metadata"] = _with_first(metadata, _FIRST_OF_METADATA)
    return out


def mapping(value: Object, column: int, *, indented: bool = True) -> list[str]:
    """The lines of a mapping that is not empty. `indented`: sequences stand deeper than the key they belong to."""
    pad = " " * column
    out: list[str] = []
    for key, child in value.items():
        name = _name(key) if len(key) <= _SHORT_KEY else scalar(key)
        if len(name) > _LONGEST_KEY:
            first, *rest = sequence([child], column, indented=indented)
            out += [f"{pad}? {name}", f"{pad}:{first[column + 1 :]}", *rest]
            continue
        head, lines = below(child, column, indented=indented)
        out.append(f"{pad}{name}: {head}" if head else f"{pad}{name}:")
        out += lines
    return out


def sequence(items: list[Any], column: int, *, indented: bool = True) -> list[str]:
    """The lines of a sequence that is not empty, its dashes in `column`."""
    pad = " " * column
    out: list[str] = []
    for item in items:
        if item and isinstance(item, dict):
            head, *lines = mapping(item, column + 2, indented=indented)
        elif item and isinstance(item, list):
            head, *lines = sequence(item, column + 2, indented=indented)
        else:
            head, lines = below(item, column, indented=indented)
        out.append(f"{pad}- {head.lstrip()}")
        out += lines
    return out


def below(value: Any, column: int, *, indented: bool = True) -> tuple[str, list[str]]:
    """What stands behind a key of that column, and the lines below it."""
    if value and isinstance(value, dict):
        return "", mapping(value, column + 2, indented=indented)
    if value and isinstance(value, list):
        return "", sequence(value, column + 2 if indented else column, indented=indented)
    if isinstance(value, dict | list):
        return "{}" if isinstance(value, dict) else "[]", []
    block = literal(value, column) if isinstance(value, str) else None
    return block or (scalar(value), [])


def flow(value: Any, *, json_style: bool = False) -> str:
    """A value on one line, as it stands within [] or {}."""
    if json_style:
        return as_json(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{scalar(k, flow=True)}: {flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow(item) for item in value) + "]"
    return scalar(value, flow=True)


@lru_cache(2048)
def _name(key: str) -> str:
    """A short key: objects are made of few."""
    return scalar(key)


def _with_first(value: Object, first: tuple[str, ...]) -> Object:
    return {key: value[key] for key in first if key in value} | value
