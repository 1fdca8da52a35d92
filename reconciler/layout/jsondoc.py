"""Reads JSON files: one or several objects after one another, numbers and duplicate keys as in YAML.

Called by yamldoc.
"""

from __future__ import annotations

import json
from typing import Any

from apiserver.kubeyaml import scalars
from apiserver.model.nesting import DEPTH, too_deep
from reconciler.layout.errors import BadFile, LayoutError
from reconciler.layout.faults import type_name


class NotOne(Exception):
    """A fault whose place the JSON decoder does not tell; reading the file as YAML does."""


def read_json(text: str, path: str) -> list[tuple[dict[str, Any], int]]:
    """(object, line) of each object. Raises BadFile, or NotOne."""
    decoder = json.JSONDecoder(
        object_pairs_hook=_pairs,
        parse_int=lambda t: _number(t, int),
        parse_float=lambda t: _number(t, float),
        parse_constant=_constant,
    )
    out: list[tuple[dict[str, Any], int]] = []
    at, end, line = _blank(text, 1 if text.startswith("\ufeff") else 0), len(text), 0
    try:
        while at < end:
            line = text.count("\n", 0, at) + 1
            value, at = decoder.raw_decode(text, at)
            if isinstance(value, dict):
                if too_deep(value):
                    raise RecursionError
                out.append((value, line))
            elif value is not None:
                raise _bad(path, line, f"an object is a mapping, this is {type_name(value)}")
            at = _blank(text, at)
    except json.JSONDecodeError as error:
        raise BadFile([LayoutError(path, error.lineno, error.colno, f"JSON: {error.msg}")]) from error
    except RecursionError as error:
        raise _bad(path, line, f"nested more than {DEPTH} levels deep") from error
    return out


def _bad(path: str, line: int, message: str) -> BadFile:
    return BadFile([LayoutError(path, line, 0, message)])


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise NotOne("a key is given twice")
    return out


def _number(text: str, kind: type[int] | type[float]) -> int | float:
    try:
        value = kind(text)
    except ValueError:  # Python reads no integer of more than 4300 digits
        value = float(text)
    if value in (float("inf"), float("-inf")):
        raise NotOne(f"the number {text[:20]}… is too large")
    return scalars.normal(value)


def _constant(name: str) -> None:
    raise NotOne(f"{name} is not a value that JSON can hold")


def _blank(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at
