"""Which objects a pack holds, read from its index one after the other: a repository may have millions.

Called by packing. Ids are twenty bytes, in order. The format is git's (gitformat-pack, version 2 of indexes): a mark,
a table whose last entry is how many there are, then the ids.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from reconciler.repository.errors import RepositoryUnreadable

_MARK = b"\xfftOc\0\0\0\x02"
_TABLE = 256 * 4
_ID, _AT_ONCE = 20, 4096


def ids(index: Path) -> Iterator[bytes]:
    """Raises RepositoryUnreadable for what is no such index, or ends early."""
    with index.open("rb") as file:
        head = file.read(len(_MARK) + _TABLE)
        left = int.from_bytes(head[-4:], "big")
        if not head.startswith(_MARK) or len(head) < len(_MARK) + _TABLE:
            raise RepositoryUnreadable(f"{index} is not an index of a pack as git writes them")
        while left:
            size = min(left, _AT_ONCE) * _ID
            part = file.read(size)
            if len(part) < size:
                raise RepositoryUnreadable(f"{index} ends early")
            left -= size // _ID
            yield from (part[at : at + _ID] for at in range(0, size, _ID))


def merged(loose: Iterable[str], indexes: Sequence[Path]) -> Iterator[bytes]:
    """The objects with these names (sorted) and those of all these packs, each once, in order."""
    every = heapq.merge((bytes.fromhex(name) for name in loose), *(ids(index) for index in indexes))
    return (name for name, _ in groupby(every))


def holds(index: Path, wanted: Iterable[bytes]) -> bool:
    """Whether a pack has all of what is wanted (in order)."""
    there = ids(index)
    return all(name in there for name in wanted)  # each look goes on behind the last
