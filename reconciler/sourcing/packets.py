"""git's packet lines: four digits of length, and so many bytes, the four included. Pure.

Called by uploadpack.py and receivepack.py. Whoever is on the other end may lie: nothing is read beyond a bound, and
what is no packet line is a fault.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from reconciler.sourcing.faults import SourceFault, damaged

FLUSH, DELIMITER = b"0000", b"0001"
_LENGTH = re.compile(rb"[0-9a-fA-F]{4}")
_LONGEST = 65520


def line(text: str) -> bytes:
    return packet(text.encode() + b"\n")


def packet(data: bytes) -> bytes:
    return b"%04x" % (len(data) + 4) + data


class Packets:
    """`read`: so many bytes, less at the end alone. `most`: bytes of all that is read."""

    def __init__(self, read: Callable[[int], bytes], most: int) -> None:
        self._read, self._left = read, most

    def next(self) -> bytes | None:
        """What the next one holds; None for one that holds nothing and ends a section. Raises SourceFault."""
        length = self._exactly(4)
        if not _LENGTH.fullmatch(length):
            raise damaged("no packet line")
        size = int(length, 16)
        if size in (0, 1, 2):
            return None
        if not 4 <= size <= _LONGEST:
            raise damaged("a packet line of a length that none has")
        return self._exactly(size - 4)

    def section(self) -> Iterator[bytes]:
        """Those up to the next one that ends a section. Raises SourceFault."""
        while (found := self.next()) is not None:
            yield found

    def _exactly(self, size: int) -> bytes:
        self._left -= size
        if self._left < 0:
            raise SourceFault("TooLarge", "the repository's host sends more than a source may have")
        found = self._read(size)
        if len(found) != size:
            raise SourceFault("Unreachable", "the connection to the repository's host ended too early")
        return found
