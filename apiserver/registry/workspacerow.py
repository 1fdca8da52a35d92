"""How what is known of a workspace stands in its row, its record and its summary: as short as a million should be.

Called by tree, which knows what a record is. What follows from the row's key, the workspace's path, is not said again:

    form (1 byte)           FORMED: the commit as 20 bytes, the time as 5; else both as texts, each with a NUL behind it
    logical cluster · \\0    as text
    directory · \\0          see `shortened`
    record · \\0             what it says besides, as JSON; nothing where that is nothing
    summary                 what does not follow from the record, in the same way

Pure functions on texts and bytes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from apiserver.model import commits
from apiserver.model.commits import CommitRef

_FORMED: Final = b"\1"
_AS_TEXT: Final = b"\0"
_ID, _TIME = 20, 5
"""Bytes."""
_LATEST: Final = 1 << 8 * _TIME
_ROOM: Final = "workspaces"
"""The directory that holds all of them."""
_WHOLE: Final = ":"
"""Stands before a directory that is elsewhere."""
_DIRECTORIES: Final = 1024
"""How many are remembered."""


class Known(NamedTuple):
    """Of a workspace. `record`, `summary`: what they say besides, as JSON; empty where that is nothing."""

    commit: CommitRef
    origin_time: int
    cluster: str
    directory: str
    record: bytes
    summary: bytes


def encode(path: str, known: Known) -> bytes:
    commit, time, cluster, directory, record, summary = known
    place = f"{cluster}\0{shortened(path, directory)}\0".encode()
    return b"".join((_head(commit, time), place, record, b"\0", summary))


class AroundPlace(NamedTuple):
    """What is before and behind the place in rows that say the same but for that."""

    head: bytes
    tail: bytes

    def of(self, cluster: str, short: str) -> bytes:
        """The row of one of them. `short`: its directory, shortened."""
        return b"".join((self.head, f"{cluster}\0{short}\0".encode(), self.tail))


def around_place(row: bytes) -> AroundPlace | None:
    """Of a row; None where its head is kept as texts."""
    if row[:1] != _FORMED:
        return None
    end = 1 + _ID + _TIME
    return AroundPlace(row[:end], row[end:].split(b"\0", 2)[2])


def decode(path: str, row: bytes) -> Known:
    if row[:1] == _FORMED:
        commit, rest = commits.own(row[1 : 1 + _ID].hex()), row[1 + _ID + _TIME :]
        time = int.from_bytes(row[1 + _ID : 1 + _ID + _TIME], "big")
    else:
        text, seconds, rest = row[1:].split(b"\0", 2)
        commit, time = commits.parse(text.decode()), int(seconds)
    cluster, short, record, summary = rest.split(b"\0")
    return Known(commit, time, cluster.decode(), expanded(path, short.decode()), record, summary)


@lru_cache(64)  # many came with one commit
def _head(commit: CommitRef, time: int) -> bytes:
    if commit and not commit.repository and 0 <= time < _LATEST:
        return _FORMED + bytes.fromhex(commit.id) + time.to_bytes(_TIME, "big")
    return _AS_TEXT + f"{commit}\0{time}\0".encode()


@lru_cache(64)  # it is said twice of each
def shortened(path: str, directory: str) -> str:
    """A workspace's directory without what its path says already. Worked example:

    root:shop:web in workspaces/root/7f/shop/web   → /7f//
    """
    first, *names = directory.split("/")
    if first != _ROOM or not names or not all(names) or names[0].startswith(_WHOLE):
        return _WHOLE + directory
    said, out = path.split(":"), []
    for name in names:
        follows = bool(said) and name == said[0]
        del said[: int(follows)]
        out.append("" if follows else name)
    return "/".join(out)


class Shortening:
    """As `shortened`, of workspaces that stand in the same one, most of which are in a few directories."""

    def __init__(self, parent: str) -> None:
        self._parent = parent
        self._known: dict[str, str | None] = {}

    def of(self, name: str, directory: str) -> str:
        """`name`: the workspace's own."""
        around, _, last = directory.rpartition("/")
        if last != name or name in around:
            return shortened(f"{self._parent}:{name}", directory)
        if around not in self._known:
            if len(self._known) >= _DIRECTORIES:
                self._known.clear()
            self._known[around] = self._around(around)
        known = self._known[around]
        return known + "/" if known is not None else shortened(f"{self._parent}:{name}", directory)

    def _around(self, around: str) -> str | None:
        """What is said of a directory below that of the parent; None where it may be elsewhere."""
        short = shortened(self._parent, around)
        is_below = short.split("/").count("") == self._parent.count(":") + 1
        return short if is_below and not short.startswith(_WHOLE) else None


def expanded(path: str, short: str) -> str:
    """The directory that was shortened."""
    if short.startswith(_WHOLE):
        return short[len(_WHOLE) :]
    said = iter(path.split(":"))
    return "/".join((_ROOM, *(name or next(said) for name in short.split("/"))))
