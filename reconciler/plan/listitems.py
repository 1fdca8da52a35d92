"""Changes of lists item by item, where something tells the items apart. Called by gitform and review."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reconciler.layout.alike import same

Item = dict[str, Any]
Key = tuple[str, ...]

_KEYS: tuple[Key, ...] = (
    ("name",),
    ("key",),
    ("type",),
    ("mountPath",),
    ("devicePath",),
    ("containerPort",),
    ("containerPort", "protocol"),
    ("port",),
    ("port", "protocol"),
    ("ip",),
    ("uid",),
    ("topologyKey",),
    ("topologyKey", "whenUnsatisfiable"),
    ("resourceName",),
    ("host",),
    ("path",),
)
"""What tells items apart in the lists of Kubernetes' own kinds, and usually in those of others."""


def by_item(
    manifest: list[Any], live: list[Any], final: list[Any], change: Callable[[Any, Any, Any], Any], *, least: bool
) -> list[Any]:
    """The manifest's list after the change from `live` to `final`; `change` makes that of one item to another.

    All of `final` where its items cannot be told apart. With `least` only the names of items that are new.
    """
    if not all(isinstance(item, dict) for items in (manifest, live, final) for item in items):
        return final
    key = next((key for key in _KEYS if _tells(key, live) and _tells(key, final)), None)
    if key is not None:
        before = {_values(item, key): number for number, item in enumerate(live)}
        pairs = [before.get(_values(item, key)) for item in final]
    elif len(live) == len(final):
        pairs = list(range(len(final)))
    else:
        return final
    written = _written(manifest, live, key)
    new = names(final) if least else final
    out: list[Any] = []
    for at, (item, number) in enumerate(zip(final, pairs, strict=True)):
        declared = written.get(number) if number is not None else None
        if number is None or declared is None:
            out.append(new[at])
        elif same(live[number], item):
            out.append(declared)
        else:
            out.append(change(declared, live[number], item))
    return out


def key_of(*lists: list[Any]) -> Key | None:
    """What tells the items of each of some lists apart; None where nothing does."""
    if not any(lists) or not all(isinstance(item, dict) for items in lists for item in items):
        return None
    return next((key for key in _KEYS if all(_tells(key, items) for items in lists)), None)


def names(items: list[Any]) -> list[Any]:
    """Items with nothing but what tells them apart; as they are where nothing does."""
    if not all(isinstance(item, dict) for item in items):
        return items
    key = next((key for key in _KEYS if _tells(key, items)), None)
    return items if key is None else [{part: item[part] for part in key} for item in items]


def _written(manifest: list[Item], live: list[Item], key: Key | None) -> dict[int, Item]:
    """The manifest's item for each number in `live`. A manifest may leave out a part of the key that has a default."""
    if len(manifest) == len(live) and all(_may_be(m, item, key or ()) for m, item in zip(manifest, live, strict=True)):
        return dict(enumerate(manifest))
    out: dict[int, Item] = {}
    for number, item in enumerate(live):
        found = [m for m in manifest if key and key[0] in m and _may_be(m, item, key)]
        if len(found) == 1:
            out[number] = found[0]
    return out


def _may_be(manifest: Item, item: Item, key: Key) -> bool:
    return all(part not in manifest or same(manifest[part], item[part]) for part in key)


def _tells(key: Key, items: list[Item]) -> bool:
    values = [_values(item, key) for item in items]
    return None not in values and len(set(values)) == len(values)


def _values(item: Item, key: Key) -> tuple[str | int, ...] | None:
    values = tuple(item.get(part) for part in key)
    return values if all(isinstance(value, str | int) for value in values) else None  # type: ignore[return-value]
