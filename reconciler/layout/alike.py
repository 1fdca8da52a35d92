"""Which values are the same, and which items of two lists are one another's. Called by patch and edit."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Any

import orjson

from apiserver.kubeyaml.scalars import normal


def same(a: Any, b: Any) -> bool:
    """Whether two JSON values are equal to the reader: true is not 1, but 1.0 is."""
    if a is b:
        return True
    if isinstance(a, dict) and isinstance(b, dict):
        return len(a) == len(b) and all(key in b and same(value, b[key]) for key, value in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, int | float) and isinstance(b, int | float):
        return normal(a) == normal(b)
    return bool(a == b)


def pairs(old: list[Any], new: list[Any]) -> list[tuple[int, int]]:
    """(index in old, index in new) of items that are the same or versions of one another, both ascending."""
    if [_name(item) for item in old] == [_name(item) for item in new]:
        return list(zip(range(len(old)), range(len(new)), strict=True))
    out: list[tuple[int, int]] = []
    whole = SequenceMatcher(None, [_text(i) for i in old], [_text(i) for i in new], autojunk=False)
    for tag, a, a_end, b, b_end in whole.get_opcodes():
        if tag == "equal":
            out += zip(range(a, a_end), range(b, b_end), strict=True)
        elif tag == "replace":
            out += _versions(old, new, (a, a_end), (b, b_end))
    return out


def _versions(old: list[Any], new: list[Any], left: tuple[int, int], right: tuple[int, int]) -> list[tuple[int, int]]:
    names = [_name(item) for item in old[slice(*left)]], [_name(item) for item in new[slice(*right)]]
    matcher = SequenceMatcher(None, *names, autojunk=False)
    out: list[tuple[int, int]] = []
    for tag, a, a_end, b, b_end in matcher.get_opcodes():
        if tag == "equal" or (tag == "replace" and a_end - a == b_end - b):
            out += zip(range(left[0] + a, left[0] + a_end), range(right[0] + b, right[0] + b_end), strict=True)
    return out


def _text(item: Any) -> str:
    """Equal texts are the same value."""
    return orjson.dumps(item, option=orjson.OPT_SORT_KEYS).decode()


def _name(item: Any) -> str:
    """What tells an item from its neighbours, as far as lists in Kubernetes have one."""
    if not isinstance(item, dict):
        return str(item)
    metadata = item.get("metadata")
    if isinstance(metadata, dict):
        return f"{item.get('kind')} {metadata.get('namespace')} {metadata.get('name')}"
    return next((f"{key} {item[key]}" for key in ("name", "key", "type", "containerPort", "port") if key in item), "")
