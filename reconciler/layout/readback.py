"""Values of which it is known that a new file of them reads back as it was written, so that nobody has to read it.

Called by edit for each object that gets a file of its own. Most are small and of plain texts; that dump writes those so
that they are read alike is a property that tests try (test_readback). Whatever else there is, YAML has a rule of its
own for: it is read back.
"""

from __future__ import annotations

import re
from typing import Any

from apiserver.kubeyaml.nodes import is_simple

Object = dict[str, Any]

_TEXT = re.compile(r"[ -~\n]*")
_KEY = re.compile(r"[ -~]{1,256}")
_LONGEST = 64 * 1024
"""Bytes of a file."""
_DEEPEST = 16
_HIGHEST = 1 << 53


class _Unsure(Exception):
    """It is to be read back."""


def known(data: bytes, value: Object) -> Object | None:
    """What `data`, which dump made of `value`, is read as: a value of its own. None where it has to be read."""
    if len(data) > _LONGEST or not is_simple(data):
        return None
    try:
        return {key: _copy(value[key], 0) for key in _keys(value)}
    except _Unsure:
        return None


def _copy(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        if _TEXT.fullmatch(value):
            return value
    elif isinstance(value, dict):
        if depth < _DEEPEST:
            return {key: _copy(value[key], depth + 1) for key in _keys(value)}
    elif isinstance(value, list):
        if depth < _DEEPEST:
            return [_copy(item, depth + 1) for item in value]
    elif value is None or isinstance(value, bool) or (isinstance(value, int) and -_HIGHEST < value < _HIGHEST):
        return value
    raise _Unsure


def _keys(value: Object) -> Object:
    for key in value:
        if not _KEY.fullmatch(key):
            raise _Unsure
    return value
