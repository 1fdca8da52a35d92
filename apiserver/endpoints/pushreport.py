"""What git answers to a push: what of it its client may see at once, and what only once the push is written down.

Called by gitservice.py with what git says, piece by piece. git speaks in packets: on one band what it and its hooks say
to a person, and signs of life, which go on as they come; on another which refs it moved. That, and the end, is held
back: until then no client takes a push for made. A client may ask for no bands, or for no report; then all is held.
"""

from __future__ import annotations

from typing import NamedTuple

_REPORT, _WORDS = 1, 2
_MOST = 512 * 1024
"""Bytes of what is held back, and of a report; git says a line for each ref, of which there are a thousand at most."""
_KEPT = 16 * 1024
"""Bytes of what is said to a person."""


class PushReport(NamedTuple):
    """`refs`: what git says of each that it was asked to move, "" for one that it moved. `words`: lines that the client
    shows."""

    refs: dict[str, str]
    words: str


class HeldReport:
    """Of one push. `sideband`: whether its client asked for bands."""

    def __init__(self, *, sideband: bool) -> None:
        self._sideband = sideband
        self._begun = b""
        self._report, self._said = bytearray(), bytearray()
        self.held = bytearray()
        """What goes out last."""

    def passing(self, data: bytes) -> bytes:
        """What may go out now. What is no packet goes on at the end, as it came."""
        if not self._sideband:
            self.held += data
            self._report += data[: max(0, _MOST - len(self._report))]
            return b""
        now, begun = bytearray(), self._begun + data
        while len(begun) >= 4 and len(self.held) <= _MOST:
            length = _length(begun[:4])
            if length > len(begun):
                break
            packet, begun = (begun[:length], begun[length:]) if length >= 4 else (begun[:4], begun[4:])
            if length > 4 and packet[4] == _WORDS:
                self._said += packet[5 : 5 + max(0, _KEPT - len(self._said))]
                now += packet
                continue
            if length > 4 and packet[4] == _REPORT:
                self._report += packet[5:]
            self.held += packet
        self._begun = begun
        return bytes(now)

    def read(self) -> PushReport:
        """All that git said, which is over."""
        self.held += self._begun
        self._begun = b""
        return PushReport(dict(_refs(bytes(self._report))), _lines(bytes(self._said)))


def _refs(report: bytes) -> list[tuple[str, str]]:
    """`ok <ref>` and `ng <ref> <why>`, in packets."""
    found, at = [], 0
    while (length := _length(report[at : at + 4])) > 4:
        word, _, rest = report[at + 4 : at + length].decode(errors="replace").rstrip("\n").partition(" ")
        if word == "ok":
            found.append((rest, ""))
        elif word == "ng":
            ref, _, why = rest.partition(" ")
            found.append((ref, why or "refused"))
        at += length
    return found


def _lines(said: bytes) -> str:
    """Without what git writes over again, to show how far it is."""
    lines = (line.rpartition("\r")[2].strip() for line in said.decode(errors="replace").split("\n"))
    return "\n".join(filter(None, lines))


def _length(text: bytes) -> int:
    try:
        return int(text, 16)
    except ValueError:
        return 0
