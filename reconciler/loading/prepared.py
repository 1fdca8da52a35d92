"""Objects that a kind's rules were found to take, by what was said: the workspaces of a fleet say much the same, and
one that is judged whole says again what it said before.

Called by render. What a kind makes of an object (registry/strategy.py) follows from the two alone, so it is good for
every workspace. What was refused, or excused, is judged each time. Of a kind that takes some texts as they are,
whatever they say (Behaviour.any_text), objects that differ in those alone become the same but for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from apiserver.model.remembered import Remembered
from apiserver.registry import strategy
from apiserver.registry.codec import dump
from apiserver.registry.kinds import ServedKind
from reconciler.layout.mould import Alike, Mould, draw

Object = dict[str, Any]

Make = Callable[[Object], Object | None]
"""What a manifest's value becomes, which may be changed for that; None where it is refused."""

_MOST, _LONGEST = 8 * 1024 * 1024, 4096
"""Bytes of all objects that are kept, and of what one of them says."""
_MOST_ALIKE = 2 * 1024 * 1024
"""Bytes of what is kept of those that differ in texts."""
_EACH = 512
"""Bytes of one beside what it says and what it becomes."""


class Prepared:
    """`find` gives a copy."""

    def __init__(self) -> None:
        self._kept: Remembered[tuple[bytes, str], tuple[ServedKind, bytes]] = Remembered(_MOST)
        self._like: Remembered[tuple[Mould, str], tuple[ServedKind, Mould | None]] = Remembered(_MOST_ALIKE)

    def find(self, kind: ServedKind, namespace: str, said: bytes) -> Object | None:
        """The object that `said` (a manifest's value as JSON) becomes in a namespace ("": it has none)."""
        found = self._kept.get((said, namespace))
        if found is None or found[0] is not kind:
            return None
        obj: Object = orjson.loads(found[1])
        return obj

    def like(self, kind: ServedKind, namespace: str, alike: Alike, make: Make) -> Object | None:
        """The object that a manifest becomes which differs from others in texts of which the kind takes any; None where
        that has to be found out. `make` finds it out for a value."""
        at = alike.mould, namespace
        found = self._like.get(at)
        if found is None or found[0] is not kind:
            found = kind, _becomes(kind, alike, make)
            self._like.put(at, found, _EACH + 2 * sum(map(len, alike.mould.parts)))
        mould = found[1]
        return mould.filled(alike.texts) if mould is not None else None

    def keep(self, kind: ServedKind, namespace: str, said: bytes, obj: Object) -> None:
        if len(said) > _LONGEST:
            return
        said, becomes = bytes(memoryview(said)), dump(obj)
        self._kept.put((said, namespace), (kind, becomes), _EACH + len(said) + len(becomes))


def _becomes(kind: ServedKind, alike: Alike, make: Make) -> Mould | None:
    """The objects that all these become; None where their texts may mean something to the kind, or they are refused."""
    any_text = strategy.any_text(kind)
    if any(len(place) != 2 or place[0] not in any_text for place in alike.places):
        return None
    drawn = draw(len(alike.texts))
    obj = make(alike.mould.filled(drawn))
    mould = Mould.of(obj, drawn) if obj is not None else None
    return mould if mould is not None and sorted(mould.order) == sorted(alike.mould.order) else None
