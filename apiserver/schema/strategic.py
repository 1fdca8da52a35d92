"""Strategic merge patches, for Kubernetes' own kinds: merge patches that know which lists are merged, and by which key.

The knowledge is in the kinds' OpenAPI (`x-kubernetes-patch-strategy`, `x-kubernetes-patch-merge-key`); a patch may
carry directives:

    $patch: replace | delete | merge       of a map, or of one item of a list
    $retainKeys: [a, b]                    of a map: drop every other key first
    $deleteFromPrimitiveList/f: [x]        drop x from the list f
    $setElementOrder/f: [...]              the order of f's items afterwards; others stay where they were

Without an order that of the patch's items is taken for one. So an item that is new stands before those of the live list
that the patch does not name.

Called by the endpoints. Pure; custom resources have no such patches.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson

from apiserver.schema.defaults import copy_json

Json = dict[str, Any]

_PATCH, _RETAIN = "$patch", "$retainKeys"
_DELETE, _ORDER = "$deleteFromPrimitiveList/", "$setElementOrder/"
_REFERENCE = "#/components/schemas/"


class _Shape:
    """The schema of a value, followed through references; `None` inside knows nothing."""

    __slots__ = ("_definitions", "_own", "_schema")

    def __init__(self, schema: Json | None, definitions: Mapping[str, Json]) -> None:
        self._definitions = definitions
        self._own = schema or {}
        self._schema = self._resolved(self._own)

    def _resolved(self, schema: Json) -> Json:
        reference = schema.get("$ref") or next((part.get("$ref") for part in schema.get("allOf", ())), None)
        if reference is None:
            return schema
        return self._resolved(self._definitions.get(reference.removeprefix(_REFERENCE), {}))

    def field(self, name: str) -> _Shape:
        below = self._schema.get("properties", {}).get(name)
        extra = self._schema.get("additionalProperties")
        return _Shape(below if below is not None else extra if isinstance(extra, dict) else None, self._definitions)

    @property
    def item(self) -> _Shape:
        return _Shape(self._schema.get("items"), self._definitions)

    @property
    def strategies(self) -> list[str]:
        found: str = self._own.get("x-kubernetes-patch-strategy", "")
        return found.split(",")

    @property
    def key(self) -> str:
        """By which a list's items are told apart; "" for lists of plain values."""
        found: str = self._own.get("x-kubernetes-patch-merge-key", "")
        return found


def strategic_merge(target: Json, patch: Json, schema: Json, definitions: Mapping[str, Json]) -> Json:
    """`target` with `patch` merged in, as a new object that may share parts with `target`.

    `schema` is the kind's OpenAPI, `definitions` what it refers to. Raises ValueError for a patch that cannot be read.
    """
    return _map(target, patch, _Shape(schema, definitions))


def _map(target: Json, patch: Json, shape: _Shape) -> Json:
    directive = patch.get(_PATCH, "merge")
    if directive == "replace":
        return {k: _fresh(v) for k, v in patch.items() if k != _PATCH}
    if directive == "delete":
        return {}
    if directive != "merge":
        raise ValueError(f"unknown patch type {directive!r}")
    out = _retained(target, patch)
    for name, value in patch.items():
        if name.startswith(_DELETE):
            field = name.removeprefix(_DELETE)
            if isinstance(out.get(field), list):
                gone = _marks(value, name)
                out[field] = [v for v in out[field] if _mark(v) not in gone]
        elif name.startswith(_ORDER) or name in (_PATCH, _RETAIN):
            continue
        elif value is None:
            out.pop(name, None)
        else:
            below = shape.field(name)
            out[name] = _value(out[name], value, below) if name in out else _fresh(value)
    for name, order in patch.items():
        field = name.removeprefix(_ORDER)
        if name.startswith(_ORDER) and isinstance(out.get(field), list):
            out[field] = _ordered(out[field], order, target.get(field) or [], shape.field(field))
    return out


def _retained(target: Json, patch: Json) -> Json:
    kept = patch.get(_RETAIN)
    if kept is None:
        return dict(target)
    if not isinstance(kept, list):
        raise ValueError(f"{_RETAIN} is not a list")
    return {k: v for k, v in target.items() if k in kept}


def _value(old: Any, new: Any, shape: _Shape) -> Any:
    if isinstance(old, dict) and isinstance(new, dict) and "replace" not in shape.strategies:
        return _map(old, new, shape)
    if isinstance(old, list) and isinstance(new, list) and "merge" in shape.strategies:
        return _ordered(_list(old, new, shape), [v for v in new if not _directs(v)], old, shape)
    return _fresh(new)


def _directs(item: Any) -> bool:
    return isinstance(item, dict) and _PATCH in item


def _list(old: list[Any], new: list[Any], shape: _Shape) -> list[Any]:
    if not shape.key:
        there = set(map(_mark, old))
        return [*old, *(v for v in dict.fromkeys(map(_plain, new)) if v not in there)]
    if any(not isinstance(item, dict) for item in new):
        raise ValueError(f"an item of a list merged by {shape.key!r} is not an object")
    if any(item.get(_PATCH) == "replace" for item in new):
        return [_fresh(item) for item in new if _PATCH not in item]
    out = list(old)
    places: dict[Any, list[int]] = {}
    """Where the items of an identity stand; there may be several, of which the first is merged."""
    for i, item in enumerate(old):
        if isinstance(item, dict):
            places.setdefault(_mark(item.get(shape.key)), []).append(i)
    gone: set[int] = set()
    for item in new:
        if shape.key not in item:
            raise ValueError(f"an item has no {shape.key!r}, by which its list is merged")
        identity = _mark(item[shape.key])
        at = places.get(identity)
        if item.get(_PATCH) == "delete":
            gone.update(places.pop(identity, ()))
        elif at:
            out[at[0]] = _map(out[at[0]], item, shape.item)
        else:
            places[identity] = [len(out)]
            out.append(_fresh(item))
    return [v for i, v in enumerate(out) if i not in gone]


def _plain(value: Any) -> Any:
    if isinstance(value, dict | list):
        raise ValueError("an item of a list of plain values is none")
    return value


def _fresh(value: Any) -> Any:
    """What a patch brings where nothing was: without nulls and directives."""
    if isinstance(value, dict):
        return {
            k: _fresh(v)
            for k, v in value.items()
            if v is not None and not k.startswith((_PATCH, _RETAIN, _DELETE, _ORDER))
        }
    if isinstance(value, list):
        return [_fresh(v) for v in value if not (isinstance(v, dict) and v.get(_PATCH) == "delete")]
    return copy_json(value)


def _ordered(merged: list[Any], order: Any, before: list[Any], shape: _Shape) -> list[Any]:
    """`merged` with what `order` names in that order, and the rest where the live list had it."""
    if not isinstance(order, list):
        raise ValueError(f"{_ORDER} is not a list")
    identity = _identity(shape.key)
    wanted = _positions(order, identity)
    lived = _positions(before, identity)
    named = deque(sorted((v for v in merged if identity(v) in wanted), key=lambda v: wanted[identity(v)]))
    rest = deque(v for v in merged if identity(v) not in wanted)
    out: list[Any] = []
    while named and rest:
        first, other = lived.get(identity(named[0])), lived.get(identity(rest[0]))
        rest_first = other is not None and first is not None and other < first
        out.append((rest if rest_first else named).popleft())
    return [*out, *named, *rest]


def _positions(values: Iterable[Any], identity: Callable[[Any], Any]) -> dict[Any, int]:
    """Where each stands first."""
    found: dict[Any, int] = {}
    for at, value in enumerate(values):
        found.setdefault(identity(value), at)
    return found


def _identity(key: str) -> Callable[[Any], Any]:
    return lambda v: _mark(v.get(key) if key and isinstance(v, dict) else v)


def _mark(value: Any) -> Any:
    """What stands for a value in sets: lists of thousands are compared with each other."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS) if isinstance(value, dict | list) else value


def _marks(values: Any, name: str) -> set[Any]:
    if not isinstance(values, list):
        raise ValueError(f"{name} is not a list")
    return set(map(_mark, values))
