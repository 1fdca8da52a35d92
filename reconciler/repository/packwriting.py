"""Packs of objects that were made here, written by this process.

Called by write. The program of git takes several times as long to start as such a pack takes to be written, and checks
what a stranger might have sent; here each object's name was reckoned from its bytes a moment before. The format is
git's (gitformat-pack, version 2 of both). The index comes last, since git looks for packs by that.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from itertools import accumulate
from pathlib import Path

from reconciler.repository import library

_INDEX = b"\xfftOc\0\0\0\x02"
_MODE = 0o444
MOST = 2**31
"""Bytes of a pack whose index has no need of long offsets."""


def packed(objects: Mapping[str, tuple[int, bytes]]) -> tuple[bytes, bytes]:
    """A pack of these objects, and its index. The latter is of no use where the pack has MOST bytes."""
    parts = [b"PACK" + (2).to_bytes(4, "big") + len(objects).to_bytes(4, "big")]
    parts += [_header(kind, len(data)) + zlib.compress(data, 1) for kind, data in objects.values()]
    body = b"".join(parts)
    checksum = _digest(body)
    if len(body) >= MOST:
        return body + checksum, b""
    places = accumulate(map(len, parts[:-1]))
    each = sorted(zip((bytes.fromhex(name) for name in objects), places, parts[1:], strict=True))
    firsts = [0] * 256
    for name, _, _ in each:
        firsts[name[0]] += 1
    index = b"".join([
        _INDEX,
        *(number.to_bytes(4, "big") for number in accumulate(firsts)),
        *(name for name, _, _ in each),
        *(zlib.crc32(part).to_bytes(4, "big") for _, _, part in each),
        *(place.to_bytes(4, "big") for _, place, _ in each),
        checksum,
    ])  # fmt: skip
    return body + checksum, index + _digest(index)


def put(directory: Path, pack: bytes, index: bytes) -> None:
    """Into the directory of a repository's packs, on disk where this process flushes what it writes to git. Raises
    OSError."""
    directory.mkdir(exist_ok=True)
    place = directory / f"pack-{pack[-20:].hex()}"
    put_file(place.with_suffix(".pack"), pack, "tmp_pack_")
    put_file(place.with_suffix(".idx"), index, "tmp_pack_")
    if library.flushes():
        flush_names(directory)


def flush_names(directory: Path) -> None:
    """Which files are in a directory, to disk. Raises OSError."""
    found = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(found)
    finally:
        os.close(found)


def put_file(path: Path, data: bytes, prefix: str) -> None:
    """A file of git's, in one step, flushed like all others. `prefix`: by which git knows and drops what is left of one
    that did not come to its end. Raises OSError."""
    descriptor, name = tempfile.mkstemp(prefix=prefix, dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(descriptor, _MODE)
            if library.flushes():
                os.fsync(descriptor)
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise


def _digest(data: bytes) -> bytes:
    return hashlib.sha1(data, usedforsecurity=False).digest()


def _header(kind: int, size: int) -> bytes:
    out, byte, size = bytearray(), (kind << 4) | (size & 15), size >> 4
    while size:
        out.append(byte | 0x80)
        byte, size = size & 0x7F, size >> 7
    out.append(byte)
    return bytes(out)
