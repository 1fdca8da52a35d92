"""Files that differ in nothing but short texts in quotes: what they say is found out once, and each says it with its
own texts put in.

Called by loading/files, for the many small files of a fleet of which each says a number or a name of its own. Where a
text may be put in is found out by reading the file with texts drawn by lot: a place counts where such a text stands in
what was read, as a whole, and not in what says which object it is (apiVersion, kind, metadata). Whatever else is
between quotes is part of the shape, like all that is not. A text that may be put in has letters, digits and a few signs
that mean nothing to YAML between quotes, so reading it is finding it there again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from enum import Enum
from functools import partial
from itertools import zip_longest
from typing import Any, Final, NamedTuple

from apiserver.model.origins import Origin
from apiserver.model.remembered import Remembered, footprint
from reconciler.layout.manifest import Manifest, read
from reconciler.layout.mould import Alike, Mould, Place, draw

_TEXT: Final = re.compile(rb"""(?<=['"])([A-Za-z0-9._/-]{1,64})(?=['"])""")
_LONGEST, _MOST_TEXTS = 4096, 16
"""Bytes of a file, and texts in it, up to which it is looked at so."""
_MOST, _EACH = 4 * 1024 * 1024, 1024
"""Bytes of all shapes, and of one beside what it says."""
_WHICH = frozenset({"apiVersion", "kind", "metadata"})


class _Known(Enum):
    """Of files without a shape: they were met once, or there can be none."""

    ONCE = "once"
    NONE = "none"


class FileSaid(NamedTuple):
    """What a file says. `size`: bytes in memory of the manifests' values, about."""

    manifests: tuple[Manifest, ...]
    size: int


class _Shape(NamedTuple):
    """Of files. `manifests`: as read with drawn texts, and how the value of each is made; `size`: see Said."""

    manifests: tuple[tuple[Manifest, Mould, tuple[Place, ...]], ...]
    size: int


class Shapes:
    """One is made when it is asked for a second time."""

    def __init__(self) -> None:
        self._free: Remembered[tuple[bytes, ...], tuple[int, ...] | _Known] = Remembered(_MOST)
        """By what stands around the texts of a file: which of them may be others."""
        self._kept: Remembered[tuple[tuple[bytes, ...], ...], _Shape | _Known] = Remembered(_MOST)
        """By that, and by the texts that may not."""

    def read(self, data: bytes, path: str) -> FileSaid | None:
        """What `manifest.read` finds in a file without faults; None where it has to be asked."""
        parts = _TEXT.split(data) if len(data) <= _LONGEST and not path.endswith(".json") else [data]
        if not 1 < len(parts) <= 2 * _MOST_TEXTS + 1:
            return None
        around, texts = tuple(parts[::2]), parts[1::2]
        free = self._free.get(around)
        if not isinstance(free, tuple):
            free = _free_in(around, len(texts), path) if free is _Known.ONCE else _Known.ONCE
            self._free.put(around, free, _EACH + len(data))
        if not isinstance(free, tuple) or not free:
            return None
        fixed = tuple(text for number, text in enumerate(texts) if number not in free)
        shape = self._kept.get((around, fixed))
        if not isinstance(shape, _Shape):
            shape = self._next((around, fixed), shape, len(data), partial(_shape, around, texts, free, path))
        return _said(shape, tuple(texts[number] for number in free), path) if shape is not None else None

    def _next(
        self, at: tuple[tuple[bytes, ...], ...], known: _Known | None, size: int, make: Callable[[], _Shape | None]
    ) -> _Shape | None:
        shape = make() if known is _Known.ONCE else None
        found = shape or (_Known.NONE if known is not None else _Known.ONCE)
        self._kept.put(at, found, _EACH + 2 * size + (shape.size if shape is not None else 0))
        return shape


def _free_in(around: tuple[bytes, ...], count: int, path: str) -> tuple[int, ...]:
    """The numbers of the texts that may be others."""
    drawn = draw(count)
    found = read(_written(around, drawn), path)
    if found.errors:
        return ()
    seen = Counter(text for manifest in found.objects for text, _ in _places(manifest.value, drawn))
    return tuple(number for number, text in enumerate(drawn) if seen[text] == 1)


def _shape(around: tuple[bytes, ...], texts: list[bytes], free: tuple[int, ...], path: str) -> _Shape | None:
    """None where what is fixed makes something else of a text that may be another."""
    drawn = draw(len(free))
    all_of_them = list(texts)
    for number, text in zip(free, drawn, strict=True):
        all_of_them[number] = text
    found = read(_written(around, all_of_them), path)
    if found.errors:
        return None
    out, seen = [], list[int]()
    for manifest in found.objects:
        mould, places = Mould.of(manifest.value, drawn), dict(_places(manifest.value, drawn))
        seen += mould.order
        if len(places) != len(mould.order):
            return None
        out.append((manifest, mould, tuple(places[drawn[number]] for number in mould.order)))
    size = sum(footprint(manifest.value) for manifest, _, _ in out)
    return _Shape(tuple(out), size) if sorted(seen) == [*range(len(free))] else None


def _said(shape: _Shape, texts: tuple[bytes, ...], path: str) -> FileSaid:
    """What a file says with these texts."""
    origin = Origin(path)
    found = [
        Manifest(
            origin, each.index, each.line, each.gvk, each.namespace, each.name, mould.filled(texts),
            Alike(mould, places, texts),
        )
        for each, mould, places in shape.manifests
    ]  # fmt: skip
    return FileSaid(tuple(found), shape.size)


def _written(around: Iterable[bytes], texts: Iterable[bytes]) -> bytes:
    """The file with these texts."""
    return b"".join(part for pair in zip_longest(around, texts, fillvalue=b"") for part in pair)


def _places(value: Any, drawn: Collection[bytes], at: Place = ()) -> Iterator[tuple[bytes, Place]]:
    """Which of some texts stand as a whole where they may be others, and where."""
    if isinstance(value, str):
        text = value.encode()
        if text in drawn:
            yield text, at
    elif isinstance(value, dict):
        for name, inner in value.items():
            if at or name not in _WHICH:
                yield from _places(inner, drawn, (*at, name))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _places(inner, drawn, (*at, number))
