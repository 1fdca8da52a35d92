"""Objects that a kind's rules were found to take, by what was said: the workspaces of a fleet say much the same, and
one that is judged whole says again what it said before.

Called by render. What a kind makes of an object (registry/strategy.py) follows from the two alone, so it is good for
every workspace. What was refused, or excused, is judged each time.
"""

from __future__ import annotations

from typing import Any

import orjson

from apiserver.model.remembered import Remembered
from apiserver.registry.codec import dump
from apiserver.registry.kinds import ServedKind

Object = dict[str, Any]

_MOST, _LONGEST = 8 * 1024 * 1024, 4096
"""Bytes of all objects that are kept, and of what one of them says."""
_EACH = 512
"""Bytes of one beside what it says and what it becomes."""


class Prepared:
    """`find` gives a copy."""

    def __init__(self) -> None:
        self._kept: Remembered[tuple[bytes, str], tuple[ServedKind, bytes]] = Remembered(_MOST)

    def find(self, kind: ServedKind, namespace: str, said: bytes) -> Object | None:
        """The object that `said` (a manifest's value as JSON) becomes in a namespace ("": it has none)."""
        found = self._kept.get((said, namespace))
        if found is None or found[0] is not kind:
            return None
        obj: Object = orjson.loads(found[1])
        return obj

    def keep(self, kind: ServedKind, namespace: str, said: bytes, obj: Object) -> None:
        if len(said) > _LONGEST:
            return
        said, becomes = bytes(memoryview(said)), dump(obj)
        self._kept.put((said, namespace), (kind, becomes), _EACH + len(said) + len(becomes))
