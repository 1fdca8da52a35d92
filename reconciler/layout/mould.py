"""JSON with gaps for texts: how values are made that differ in nothing else.

Made by shapes of files and by loading/prepared of objects; a manifest that was made so says which it is (`Alike`).
"""

from __future__ import annotations

import re
import secrets
from typing import Any, NamedTuple

import orjson

Place = tuple[str | int, ...]
"""Where in a value something stands: names of fields and numbers of items."""


class Mould(NamedTuple):
    """JSON with gaps for texts. `parts`: what stands around them, one more than there are; `order`: which text comes
    next."""

    parts: tuple[bytes, ...]
    order: tuple[int, ...]

    def filled(self, texts: tuple[bytes, ...]) -> Any:
        """The value. Texts need no escaping."""
        out = [self.parts[0]]
        for number, part in zip(self.order, self.parts[1:], strict=True):
            out += (texts[number], part)
        return orjson.loads(b"".join(out))

    @staticmethod
    def of(value: Any, drawn: tuple[bytes, ...]) -> Mould:
        """Of a value that says drawn texts."""
        found = re.split(b"(" + b"|".join(drawn) + b")", orjson.dumps(value)) if drawn else [orjson.dumps(value)]
        return Mould(tuple(found[::2]), tuple(drawn.index(text) for text in found[1::2]))


class Alike(NamedTuple):
    """What a manifest has in common with others. `mould`: of its value; `places`: where the texts stand that the mould
    asks for, in its order; `texts`: its own."""

    mould: Mould
    places: tuple[Place, ...]
    texts: tuple[bytes, ...]


def draw(count: int) -> tuple[bytes, ...]:
    """Texts that nobody says by chance, and none of which stands in another."""
    return tuple(b"x" + secrets.token_hex(12).encode() for _ in range(count))
