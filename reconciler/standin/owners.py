"""Who belongs to whom: an index of ownerReferences, kept up from the store's log.

Used by the loop alone, from its one thread. Holds keys and uids only of objects that have owners.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from apiserver.model.keys import Key

Object = dict[str, Any]

_MENTION = b'"ownerReferences"'


class Owners:
    """`seen` and `gone` may be told the same thing twice, or something older again: what was told last counts."""

    def __init__(self) -> None:
        self._dependents: dict[str, set[Key]] = {}
        self._references: dict[Key, list[Object]] = {}

    def seen(self, key: Key, value: bytes) -> None:
        """The object now has this value."""
        self.gone(key)
        if _MENTION not in value:
            return
        references = orjson.loads(value)["metadata"].get("ownerReferences") or []
        if references:
            self._references[key] = references
            for reference in references:
                self._dependents.setdefault(reference["uid"], set()).add(key)

    def gone(self, key: Key) -> None:
        for reference in self._references.pop(key, ()):
            found = self._dependents.get(reference["uid"])
            if found is not None:
                found.discard(key)
                if not found:
                    del self._dependents[reference["uid"]]

    def dependents(self, uid: str) -> list[Key]:
        return sorted(self._dependents.get(uid, ()))

    def references(self, key: Key) -> Iterable[Object]:
        return self._references.get(key, ())
