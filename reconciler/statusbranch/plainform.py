"""The canonical form of values that need no care: the bytes that the YAML library would write, in a tenth of the time.

Called by format. Nearly all that the status branch says is mappings, lists, short texts of letters, digits and a few
signs, and JSON (who owns an object's fields). Whatever else a value has (a text of several lines, a long one that would
be folded, a quote, a float) is None here, and the library's to write: it is the measure, and the tests compare the two.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from yaml import CSafeDumper

WIDTH: Final = 120
"""Columns from which on the library folds a text."""
_LONGEST_KEY: Final = 100
"""Characters; from 128 on the library writes a question mark before it."""
_DEEPEST: Final = 50
_KEPT: Final = 4096
_SAFE: Final = re.compile(r"[A-Za-z0-9_./](?:[A-Za-z0-9_./+,()=%@;*&!|<>~\[\]{}-]|:(?![ ]|$)| (?![ #]|$))*")
"""A text that stands as it is, unless it would be read as something else. A colon, a number sign and spaces mean
something to YAML in some places."""
_JSON: Final = re.compile(r"[\[{][!-&(-~]*")
"""A text that stands as it is in quotes, however long: it is folded at spaces, and has none."""
_MARKERS: Final = ("---", "...")
_ELSE: Final = CSafeDumper.yaml_implicit_resolvers
"""By first character, what a text without quotes is read as."""


class _NotPlain(Exception):
    """There is something in a value that is the library's to write."""


def dumped(value: dict[str, Any]) -> bytes | None:
    """None where the library has to be asked."""
    out: list[str] = []
    try:
        _mapping(value, 0, 0, out)
    except _NotPlain:
        return None
    return "".join(out).encode() if value else b"{}\n"


def _mapping(value: dict[str, Any], column: int, first: int, out: list[str]) -> None:
    """`first`: the column of the first key, which may stand behind a dash: no more than that is written before it."""
    if column > _DEEPEST:
        raise _NotPlain
    pad = " " * column
    lead = " " * first
    if not all(type(key) is str for key in value):
        raise _NotPlain
    for key in sorted(value):
        if len(key) > _LONGEST_KEY:
            raise _NotPlain
        name, child = _text(key), value[key]
        if type(child) is dict and child:
            out += (lead, name, ":\n")
            _mapping(child, column + 2, column + 2, out)
        elif type(child) is list and child:
            out += (lead, name, ":\n")
            _sequence(child, column, column, out)
        else:
            said = _scalar(child)
            if column + len(name) + 2 + len(said) > WIDTH and " " in said:
                raise _NotPlain
            out += (lead, name, ": ", said, "\n")
        lead = pad


def _sequence(items: list[Any], column: int, first: int, out: list[str]) -> None:
    """`first`: as of `_mapping`."""
    if column > _DEEPEST:
        raise _NotPlain
    lead = " " * first
    for item in items:
        out += (lead, "- ")
        if type(item) is dict and item:
            _mapping(item, column + 2, 0, out)
        elif type(item) is list and item:
            _sequence(item, column + 2, 0, out)
        else:
            said = _scalar(item)
            if column + 2 + len(said) > WIDTH and " " in said:
                raise _NotPlain
            out += (said, "\n")
        lead = " " * column


def _scalar(value: Any) -> str:
    kind = type(value)
    if kind is str:
        return _text(value) if len(value) <= WIDTH else _quoted(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        return str(value)
    if value is None:
        return "null"
    if kind in (dict, list) and not value:
        return "{}" if kind is dict else "[]"
    raise _NotPlain


@lru_cache(_KEPT)
def _text(value: str) -> str:
    if not value:
        return "''"
    if not _SAFE.fullmatch(value):
        return _quoted(value)
    if value.startswith(_MARKERS):
        raise _NotPlain
    said = (*_ELSE.get(value[0], ()), *_ELSE.get(None, ()))
    return f"'{value}'" if any(pattern.match(value) for _, pattern in said) else value


def _quoted(value: str) -> str:
    if not _JSON.fullmatch(value):
        raise _NotPlain
    return f"'{value}'"
