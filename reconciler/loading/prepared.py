"""Objects that a kind's rules were found to take, by what was said: the workspaces of a fleet say much the same, and
one that is judged whole says again what it said before.

Called by render. What a kind makes of an object (registry/strategy.py) follows from the two alone, so it is good for
every workspace. What was refused, or excused, is judged each time.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import orjson

from apiserver.registry.codec import dump
from apiserver.registry.kinds import ServedKind

Object = dict[str, Any]

_KEPT, _LONGEST = 4096, 4096
"""Objects, and bytes of one of them."""


class Prepared:
    """`find` gives a copy. For one thread."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[bytes, str], tuple[ServedKind, bytes]] = OrderedDict()

    def find(self, kind: ServedKind, namespace: str, said: bytes) -> Object | None:
        """The object that `said` (a manifest's value as JSON) becomes in a namespace ("": it has none)."""
        found = self._kept.get((said, namespace))
        if found is None or found[0] is not kind:
            return None
        self._kept.move_to_end((said, namespace))
        obj: Object = orjson.loads(found[1])
        return obj

    def keep(self, kind: ServedKind, namespace: str, said: bytes, obj: Object) -> None:
        if len(said) > _LONGEST:
            return
        self._kept[bytes(memoryview(said)), namespace] = kind, dump(obj)
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
