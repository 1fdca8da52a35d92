"""JSON documents written anew in the manner of those that they replace. Called by edit."""

from __future__ import annotations

import json
import re
from typing import Any

from reconciler.layout.quoting import as_json

_INDENT = re.compile(r"[{\[]\r?\n([ \t]+)")
_COMPACT = re.compile(r'":\S')


def spans(text: str) -> list[tuple[int, int]]:
    """Where each object of a JSON file stands; documents that are null are left out."""
    decoder = json.JSONDecoder(parse_int=str, parse_float=str)
    out: list[tuple[int, int]] = []
    at, blank = 0, re.compile(r"\s*")
    while (at := blank.match(text, at).end()) < len(text):  # type: ignore[union-attr]
        value, end = decoder.raw_decode(text, at)
        if value is not None:
            out.append((at, end))
        at = end
    return out


def is_json(text: str) -> bool:
    """Whether a piece of YAML could as well stand in a JSON file."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def rendered(value: Any, model: str, old: Any = None) -> str:
    """A value indented as `model` is. Keys that `old` has keep their order."""
    found = _INDENT.search(model)
    indent = found[1] if found else None
    separators = (",", ":") if indent is None and _COMPACT.search(model) else (",", ": ") if indent else (", ", ": ")
    text = as_json(_in_order(value, old), indent=indent, separators=separators)
    return text.replace("\n", "\r\n") if "\r\n" in model else text


def _in_order(value: Any, old: Any) -> Any:
    if isinstance(value, dict) and isinstance(old, dict):
        names = [*(name for name in old if name in value), *(name for name in value if name not in old)]
        return {name: _in_order(value[name], old.get(name)) for name in names}
    if isinstance(value, list) and isinstance(old, list):
        return [_in_order(item, old[n] if n < len(old) else None) for n, item in enumerate(value)]
    return value
