"""What a git client sends: unpacked, counted, and looked at where it says which refs a push is about.

Called by gitservice.py. Nothing is held in memory whole but the list of refs, which is bounded.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import AsyncIterator
from typing import NamedTuple

from apiserver.endpoints.exchange import Exchange
from apiserver.model.errors import StatusError, bad_request
from apiserver.pushlog import PushedRef

_PIECE = 64 * 1024
_LIST = 1024 * 1024
"""Bytes of the list of refs."""
_FLUSH = b"0000"
_MOVED = re.compile(rb"([0-9a-f]{40}) ([0-9a-f]{40}) ([^\0]*)")
_NONE = "0" * 40


async def pieces(exchange: Exchange, most: int) -> AsyncIterator[bytes]:
    """The body, in parts of at most 64 KiB, as it is once it is unpacked.

    Raises ConnectionResetError where the client went away before its end, StatusError 413 beyond `most` bytes and 400
    for what is not packed as it says.
    """
    unpacking = zlib.decompressobj(31) if exchange.header(b"content-encoding") in ("gzip", "x-gzip") else None
    count, more = 0, True
    while more:
        message = await exchange.receive()
        if message["type"] == "http.disconnect":
            raise ConnectionResetError("the client went away")
        more = message.get("more_body", False)
        data: bytes = message.get("body", b"")
        while data:
            part, data = (data[:_PIECE], data[_PIECE:]) if unpacking is None else _unpacked(unpacking, data)
            count += len(part)
            if count > most:
                raise StatusError(413, "RequestEntityTooLarge", f"the request is larger than {most} bytes")
            if part:
                yield part
    if unpacking is not None and not unpacking.eof:
        raise bad_request("the body ends in the middle of what gzip packed")


def _unpacked(unpacking: zlib._Decompress, data: bytes) -> tuple[bytes, bytes]:
    """The next part, and what is still packed."""
    if unpacking.eof:
        raise bad_request("something follows what gzip packed")
    try:
        part = unpacking.decompress(data, _PIECE)
    except zlib.error as error:
        raise bad_request(f"the body is not what gzip packs: {error}") from None
    return part, unpacking.unconsumed_tail or unpacking.unused_data


class Commands(NamedTuple):
    """The beginning of a push. `head`: as it was sent, with what came behind it; `refs`: how many it is about;
    `sideband`: whether the client shows what it is told beside git's answer; `moves`: which refs it is to move."""

    head: bytes
    refs: int
    sideband: bool
    moves: tuple[PushedRef, ...] = ()

    @property
    def tips(self) -> tuple[str, ...]:
        """Ids of what the refs shall be."""
        return tuple(dict.fromkeys(each.new for each in self.moves if each.new != _NONE))


async def commands(body: AsyncIterator[bytes]) -> Commands:
    """Reads `body` up to the end of its list of refs. What is no such list is left to git. Raises StatusError 413 for a
    list that does not end, and what the body raises."""
    head, at, count, moves = bytearray(), 0, 0, list[PushedRef]()
    async for part in body:
        head += part
        while len(head) - at >= 4:
            length = _length(head[at : at + 4])
            if length < 4:  # the list's end, or nothing that git sends
                return Commands(bytes(head), count, b"side-band-64k" in head[:at].partition(b"\0")[2], tuple(moves))
            if len(head) - at < length:
                break
            if moved := _MOVED.match(head, at + 4, at + length):
                old, new, ref = (part.decode(errors="replace") for part in moved.groups())
                moves.append(PushedRef(ref.removesuffix("\n"), old, new))
            at, count = at + length, count + 1
        if at > _LIST or len(head) - at > _LIST:
            raise StatusError(413, "RequestEntityTooLarge", "the list of refs is too long: push them in several parts")
    return Commands(bytes(head), count, False)


def _length(text: bytes | bytearray) -> int:
    try:
        return int(text, 16)
    except ValueError:
        return 0


def refusal(text: str, sideband: bool) -> bytes:
    """An answer to a push in which git's client shows `text` to its user."""
    line = f"treeplane: {text}\n".encode()
    return _line((b"\x03" if sideband else b"ERR ") + line) + _FLUSH


def _line(data: bytes) -> bytes:
    return f"{len(data) + 4:04x}".encode() + data
