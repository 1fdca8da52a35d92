"""How keys, objects and log entries stand in LMDB: pure functions on bytes.

Called by the LMDB store's reader and writer; knows neither transactions nor files. All integers are big-endian, so that
byte order is numeric order.

    key      resource id (4 bytes) · logical cluster · \\0 · namespace · \\0 · name
    object   key → revision (8) · length of stamp (1) · length of the full key (2) · full key · stamp · value
    entry    revision (8) → deletion (1) · length of key (2) · full key · the object's previous record, if there was one

The resource (with its identity, up to some 150 bytes) is interned. The logical cluster is not: it has at most 16
characters, two table rows for each of a million workspaces would take the room that the shorter keys save, a list
across all workspaces would need a cache of a million names in every process, and its order would be that of arrival.

LMDB's keys end at 511 bytes. Kubernetes' names always fit. Keys of Treeplane's own records (workspace paths) may be
longer: they keep a prefix and a hash of the rest, and the object's record then holds the full key.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Final

from apiserver.model.keys import Key
from apiserver.storage.protocol import Record

LONGEST: Final = 511
_HASHED_PREFIX: Final = LONGEST - 64

U64: Final = struct.Struct(">Q")
_OBJECT: Final = struct.Struct(">QBH")
_ENTRY: Final = struct.Struct(">BH")
OBJECT_HEAD: Final = _OBJECT.size
PLAIN: Final = bytes(3)
"""Bytes 8 to 11 of an object that has neither stamp nor long key: its value begins at OBJECT_HEAD."""

_tuple = tuple.__new__


def tail(key: Key) -> bytes:
    """The key without its resource. Raises ValueError for what cannot be stored."""
    text = f"{key.cluster}\0{key.namespace}\0{key.name}"
    if text.count("\0") != 2:
        raise ValueError(f"a key may not contain NUL: {key}")
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"a key must be valid Unicode: {key!r}") from None


def check_length(key: Key, full: bytes) -> None:
    """Raises ValueError if `full`, the encoded key, is longer than what its resource may have."""
    if len(full) > LONGEST and not (key.resource.startswith("~") and len(full) <= 0xFFFF):
        raise ValueError(f"the key takes {len(full)} bytes, the store holds at most {LONGEST}: {key}")


def short(full: bytes) -> bytes:
    """The key as LMDB holds it."""
    if len(full) <= LONGEST:
        return full
    return full[:_HASHED_PREFIX] + hashlib.blake2b(full, digest_size=32).hexdigest().encode()


def prefix(resource: bytes, cluster: str | None, namespace: str | None) -> tuple[bytes, bytes]:
    """The range of keys [first, end) of a resource, of one workspace of it, of one namespace of that."""
    if cluster is None:
        return resource, U64.pack(int.from_bytes(resource, "big") + 1)[4:]
    start = resource + cluster.encode() + b"\0"
    if namespace is not None:
        start += namespace.encode() + b"\0"
    return start, start[:-1] + b"\1"


def split(full: bytes, resource: str) -> Key:
    """The inverse of resource id + tail(key)."""
    cluster, namespace, name = full[4:].decode().split("\0")
    return _tuple(Key, (resource, cluster, namespace, name))


def encode_object(revision: int, full: bytes, stamp: bytes, value: bytes) -> bytes:
    if len(full) <= LONGEST:
        return _OBJECT.pack(revision, len(stamp), 0) + stamp + value
    return b"".join((_OBJECT.pack(revision, len(stamp), len(full)), full, stamp, value))


def revision_of(raw: bytes) -> int:
    """Of an object's record."""
    return int.from_bytes(raw[:8], "big")


def decode_object(raw: bytes) -> tuple[int, bytes, bytes]:
    """Revision, stamp and value of an object's record."""
    revision, stamped, long = _OBJECT.unpack_from(raw)
    at = OBJECT_HEAD + long
    return revision, raw[at : at + stamped], raw[at + stamped :]


def record(key: Key, raw: bytes) -> Record:
    revision, stamped, long = _OBJECT.unpack_from(raw)
    if not stamped and not long:
        return _tuple(Record, (key, revision, raw[OBJECT_HEAD:], b""))
    at = OBJECT_HEAD + long
    return _tuple(Record, (key, revision, raw[at + stamped :], raw[at : at + stamped]))


def full_key(stored: bytes, raw: bytes) -> bytes:
    """The whole key of an object whose record is `raw`, however long."""
    long = int.from_bytes(raw[9:11], "big")
    return raw[OBJECT_HEAD : OBJECT_HEAD + long] if long else stored


def encode_entry(full: bytes, deleted: bool, previous: bytes | None) -> bytes:
    return b"".join((_ENTRY.pack(deleted, len(full)), full, previous or b""))


def decode_entry(raw: bytes) -> tuple[bool, bytes, bytes | None]:
    """Whether the entry is a deletion, its full key, and the record that stood before (None: it was created)."""
    deleted, length = _ENTRY.unpack_from(raw)
    at = 3 + length
    return bool(deleted), raw[3:at], raw[at:] or None
