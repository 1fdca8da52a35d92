"""gzip for large answers, in pieces or whole. The door to isal.

Called by exchange.py. Watches are never compressed: each of them would need a window of its own, and the bytes of an
event could not be shared.
"""

from __future__ import annotations

from typing import Protocol

from isal import isal_zlib

_LEVEL = 1
_GZIP = 16 + 15
"""zlib's window bits for a gzip header and trailer around the largest window."""


class Compressor(Protocol):
    """Takes pieces; what comes back may lag behind until `flush` ends it."""

    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


def compressor() -> Compressor:
    found: Compressor = isal_zlib.compressobj(_LEVEL, isal_zlib.DEFLATED, _GZIP)
    return found


def compress(body: bytes) -> bytes:
    packer = compressor()
    return packer.compress(body) + packer.flush()
