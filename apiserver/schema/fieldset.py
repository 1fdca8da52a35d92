"""Sets of fields, as managedFields writes them: the set is the decoded fieldsV1 itself.

    {"f:spec": {"f:replicas": {}, "f:parts": {"k:{\"name\":\"a\"}": {".": {}, "f:count": {}}}}}

A node is a member when it is `{}` or holds `.`; its other entries are sets below it. Entries are `f:<field>`,
`k:<key fields as sorted JSON>`, `v:<value as JSON>`, `i:<index>`. A set at the root is the entries alone: `{}` is the
empty set. Nothing here changes its arguments; results share parts with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import orjson

from apiserver.schema.messages import number, quote

Fields = dict[str, Any]

SELF = "."
MEMBER: Fields = {}
"""A member without anything below. Never changed, like all sets."""


def is_member(node: Fields) -> bool:
    return not node or SELF in node


def node(member: bool, below: Fields) -> Fields | None:
    """A node of these parts; None if it is neither a member nor has any below."""
    if not below:
        return MEMBER if member else None
    if not member:
        return below
    return {SELF: MEMBER, **below}


def below(of: Fields) -> Fields:
    """What stands below a node: a set."""
    return {k: v for k, v in of.items() if k != SELF} if SELF in of else of


def union(left: Fields, right: Fields) -> Fields:
    if not left or not right:
        return left or right
    out = dict(left)
    for key, theirs in right.items():
        mine = out.get(key)
        out[key] = theirs if mine is None else _joined(mine, theirs)
    return out


def _joined(left: Fields, right: Fields) -> Fields:
    joined = node(is_member(left) or is_member(right), union(below(left), below(right)))
    assert joined is not None
    return joined


def difference(left: Fields, right: Fields) -> Fields:
    """Members of `left` that are no members of `right`. What stands below a member of `right` stays."""
    out: Fields = {}
    for key, mine in left.items():
        theirs = right.get(key)
        rest = mine
        if theirs is not None:
            found = node(is_member(mine) and not is_member(theirs), difference(below(mine), below(theirs)))
            if found is None:
                continue
            rest = found
        out[key] = rest
    return out


def without(left: Fields, right: Fields) -> Fields:
    """`left` without the members of `right` and all that stands below them."""
    out: Fields = {}
    for key, mine in left.items():
        theirs = right.get(key)
        rest = mine
        if theirs is not None:
            found = None if is_member(theirs) else node(is_member(mine), without(below(mine), theirs))
            if found is None:
                continue
            rest = found
        out[key] = rest
    return out


def intersection(left: Fields, right: Fields) -> Fields:
    out: Fields = {}
    for key, mine in left.items():
        theirs = right.get(key)
        if theirs is not None:
            found = node(is_member(mine) and is_member(theirs), intersection(below(mine), below(theirs)))
            if found is not None:
                out[key] = found
    return out


def paths(of: Fields, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The members, each as its entries from the root; in canonical order, which has what stands deeper last."""
    keys = sorted(key for key in of if key != SELF)
    for key in keys:
        if is_member(of[key]):
            yield (*prefix, key)
    for key in keys:
        yield from paths(of[key], (*prefix, key))


def canonical(of: Fields) -> Fields:
    """The same set with its entries sorted, and keys and values in canonical JSON: what is stored."""
    return {_canonical_entry(k): canonical(of[k]) for k in sorted(of)}


def _canonical_entry(entry: str) -> str:
    if entry[:2] not in ("k:", "v:"):
        return entry
    return _remembered(entry) if len(entry) <= _SHORT else _canonical_json(entry)


def _canonical_json(entry: str) -> str:
    try:
        return entry[:2] + as_json(orjson.loads(entry[2:]))
    except orjson.JSONDecodeError:
        return entry


_SHORT = 256
"""Entries repeat from object to object; a long one is somebody's own, and would only fill the memory."""
_remembered = lru_cache(8192)(_canonical_json)


def as_json(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def shown(path: tuple[str, ...]) -> str:
    """As conflicts name it: `.spec.parts[name="a"].count`."""
    return "".join(map(_shown_entry, path))


def _shown_entry(entry: str) -> str:
    sort, text = entry[:2], entry[2:]
    if sort == "f:":
        return f".{text}"
    if sort == "k:":
        keys = orjson.loads(text)
        return "[" + ",".join(f"{k}={_shown_value(keys[k])}" for k in sorted(keys)) + "]"
    if sort == "v:":
        return f"[={_shown_value(orjson.loads(text))}]"
    return f"[{text}]"


def _shown_value(value: Any) -> str:
    if isinstance(value, str):
        return quote(value)
    if value is None or isinstance(value, bool):
        return as_json(value)
    return number(value) if isinstance(value, int | float) else as_json(value)
