"""JSON merge patch (RFC 7386) and JSON patch (RFC 6902) on decoded JSON.

Called by the endpoints' PATCH and by controllers. Neither changes its arguments, and what they return shares nothing
with them: it is pruned and defaulted in place next, while the target is still compared with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import orjson

from apiserver.schema.defaults import copy_json

Json = dict[str, Any]

COPIED = 3 * 1024 * 1024
"""Bytes that the copies of one JSON patch may add up to, as in kube-apiserver."""


def merge_patch(target: Any, patch: Any) -> Any:
    """`target` with the fields of `patch` set; null removes, anything but an object replaces."""
    if not isinstance(patch, dict):
        return copy_json(patch)
    before: Json = target if isinstance(target, dict) else {}
    names = dict.fromkeys([*before, *patch])  # in the target's order, new ones last
    return {
        k: merge_patch(before.get(k), patch[k]) if k in patch else copy_json(before[k])
        for k in names
        if k not in patch or patch[k] is not None
    }


def json_patch(target: Any, operations: Sequence[Json]) -> Any:
    """`target` after all operations. Raises ValueError, naming the operation that fails.

    Copies may double a document again and again: together they are limited.
    """
    document = copy_json(target)
    if not isinstance(operations, list | tuple):
        raise ValueError("a JSON patch is a list of operations")
    copied = 0
    for index, operation in enumerate(operations):
        try:
            if isinstance(operation, dict) and operation.get("op") == "copy":
                copied += _weight(document, operation)
                if copied > COPIED:
                    raise ValueError(f"the copies of a patch add up to more than {COPIED} bytes")
            document = _step(document, operation)
        except (ValueError, KeyError) as error:
            why = f"missing field {error}" if isinstance(error, KeyError) else str(error)
            raise ValueError(f"operation {index}: {why}") from None
    return document


def _weight(document: Any, operation: Json) -> int:
    """Bytes of what an operation copies, as JSON."""
    try:
        return len(orjson.dumps(_get(document, _tokens(operation["from"]))))
    except TypeError:
        raise ValueError("what is copied is nested too deeply") from None


def _step(document: Any, operation: Json) -> Any:
    if not isinstance(operation, dict):
        raise ValueError("not an object")
    name = operation["op"]
    step = _STEPS.get(name) if isinstance(name, str) else None
    if step is None:
        raise ValueError(f"unknown op {name!r}; known are {', '.join(sorted(_STEPS))}")
    return step(document, _tokens(operation["path"]), operation)


def _tokens(pointer: Any) -> list[str]:
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise ValueError(f"{pointer!r} is not a JSON pointer")
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _pointer(tokens: Sequence[str]) -> str:
    return "".join("/" + t.replace("~", "~0").replace("/", "~1") for t in tokens)


def _index(token: str, length: int, tokens: Sequence[str]) -> int:
    if not token.isascii() or not token.isdigit() or (len(token) > 1 and token[0] == "0"):
        raise ValueError(f"{_pointer(tokens)}: {token!r} is not a list index")
    if int(token) >= length:
        raise ValueError(f"{_pointer(tokens)}: index {token} is out of range")
    return int(token)


def _get(document: Any, tokens: Sequence[str]) -> Any:
    for depth, token in enumerate(tokens):
        here = tokens[: depth + 1]
        if isinstance(document, dict):
            if token not in document:
                raise ValueError(f"{_pointer(here)}: no such field")
            document = document[token]
        elif isinstance(document, list):
            document = document[_index(token, len(document), here)]
        else:
            raise ValueError(f"{_pointer(here)}: the parent is neither object nor list")
    return document


def _put(document: Any, tokens: Sequence[str], value: Any) -> Any:
    if not tokens:
        return value
    parent, last = _get(document, tokens[:-1]), tokens[-1]
    if isinstance(parent, dict):
        parent[last] = value
    elif isinstance(parent, list):
        at = len(parent) if last == "-" else _index(last, len(parent) + 1, tokens)
        parent.insert(at, value)
    else:
        raise ValueError(f"{_pointer(tokens)}: the parent is neither object nor list")
    return document


def _add(document: Any, tokens: list[str], operation: Json) -> Any:
    return _put(document, tokens, copy_json(operation["value"]))


def _remove(document: Any, tokens: list[str], operation: Json) -> Any:  # noqa: ARG001 (all steps are called alike)
    _get(document, tokens)
    if not tokens:
        raise ValueError("the whole document cannot be removed")
    parent, last = _get(document, tokens[:-1]), tokens[-1]
    del parent[int(last) if isinstance(parent, list) else last]
    return document


def _replace(document: Any, tokens: list[str], operation: Json) -> Any:
    value = copy_json(operation["value"])
    _get(document, tokens)
    if not tokens:
        return value
    parent, last = _get(document, tokens[:-1]), tokens[-1]
    parent[int(last) if isinstance(parent, list) else last] = value
    return document


def _move(document: Any, tokens: list[str], operation: Json) -> Any:
    source = _tokens(operation["from"])
    if tokens[: len(source)] == source and tokens != source:
        raise ValueError(f"{_pointer(source)} cannot be moved into itself")
    value = _get(document, source)
    return document if tokens == source else _put(_remove(document, source, operation), tokens, value)


def _copy(document: Any, tokens: list[str], operation: Json) -> Any:
    return _put(document, tokens, copy_json(_get(document, _tokens(operation["from"]))))


def _test(document: Any, tokens: list[str], operation: Json) -> Any:
    expected = operation.get("value")
    try:
        found = _get(document, tokens)
    except ValueError:
        if expected is None:
            return document  # as in Kubernetes: absent equals null
        raise
    if not _same(found, expected):
        raise ValueError(f"testing value {_pointer(tokens)} failed")
    return document


def _same(left: Any, right: Any) -> bool:
    """JSON equality: 1 is 1.0 and not true."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(v, right[k]) for k, v in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right)


_STEPS: dict[str, Callable[[Any, list[str], Json], Any]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}
