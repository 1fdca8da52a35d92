"""How keys, objects and log entries stand in LMDB: pure functions on bytes.

Called by the LMDB store's reader and writer; knows neither transactions nor files. All integers are big-endian, so that
byte order is numeric order.

    key      resource id (4 bytes) · logical cluster · \\0 · namespace · \\0 · name
    object   key → revision (8) · length of stamp (1) · stamp · value
             or, where many say the same, revision (8) · REFERENCE (1) · what lmdb_templates.py says
    entry    revision (8) → 0, DELETED or SWEPT (1) · length of key (2) · key · the object's previous record as it
             stood, if there was one

The resource (with its identity, up to some 150 bytes) is interned. The logical cluster is not: it has at most 16
characters, two table rows for each of a million workspaces would take the room that the shorter keys save, a list
across all workspaces would need a cache of a million names in every process, and its order would be that of arrival.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from apiserver.model.keys import Key
from apiserver.storage.protocol import Record

LONGEST: Final = 511
"""Bytes that LMDB takes as a key."""

U64: Final = struct.Struct(">Q")
_OBJECT: Final = struct.Struct(">QB")
_ENTRY: Final = struct.Struct(">BH")
OBJECT_HEAD: Final = _OBJECT.size
STAMPED: Final = OBJECT_HEAD - 1
"""The byte of an object's record that is 0 where it has no stamp: its value begins at OBJECT_HEAD then."""
DELETED: Final = 1
SWEPT: Final = 2
"""What an entry of the log that deletes begins with: one of an object, or one of all that a workspace had."""
REFERENCE: Final = 0xFF
"""The same of one that refers to a template: no stamp is as long."""

UNSTAMPED: Final = b"\0"
"""What stands there then."""

_tuple = tuple.__new__


def prefix(resource: bytes, cluster: str | None, namespace: str | None) -> tuple[bytes, bytes]:
    """The range of keys [first, end) of a resource, of one workspace of it, of one namespace of that."""
    if cluster is None:
        return resource, U64.pack(int.from_bytes(resource, "big") + 1)[4:]
    start = resource + cluster.encode() + b"\0"
    if namespace is not None:
        start += namespace.encode() + b"\0"
    return start, start[:-1] + b"\1"


def split(full: bytes, resource: str) -> Key:
    """The inverse of resource id + limits.tail(key)."""
    cluster, namespace, name = full[4:].decode().split("\0")
    return _tuple(Key, (resource, cluster, namespace, name))


def encode_object(revision: int, stamp: bytes, value: bytes) -> bytes:
    return _OBJECT.pack(revision, len(stamp)) + stamp + value


def revision_of(raw: bytes) -> int:
    """Of an object's record."""
    return int.from_bytes(raw[:8], "big")


def decode_object(raw: bytes) -> tuple[int, bytes, bytes]:
    """Revision, stamp and value of an object's record."""
    revision, stamped = _OBJECT.unpack_from(raw)
    end = OBJECT_HEAD + stamped
    return revision, raw[OBJECT_HEAD:end], raw[end:]


def record(key: Key, raw: bytes) -> Record:
    revision, stamped = _OBJECT.unpack_from(raw)
    if not stamped:
        return _tuple(Record, (key, revision, raw[OBJECT_HEAD:], b""))
    end = OBJECT_HEAD + stamped
    return _tuple(Record, (key, revision, raw[end:], raw[OBJECT_HEAD:end]))


def encode_entry(full: bytes, deletion: int, previous: bytes | None) -> bytes:
    """`deletion`: 0 for none, DELETED or SWEPT."""
    return b"".join((_ENTRY.pack(deletion, len(full)), full, previous or b""))


def resource_of_entry(raw: bytes) -> bytes:
    """The resource id in its key."""
    return raw[3:7]


def created(fulls: Iterable[bytes]) -> list[bytes]:
    """The entries of objects that are created."""
    head = _ENTRY.pack
    return [head(False, len(full)) + full for full in fulls]


def decode_entry(raw: bytes) -> tuple[bool, bytes, bytes | None]:
    """Whether the entry is a deletion, its key, and the record that stood before (None: it was created)."""
    deleted, length = _ENTRY.unpack_from(raw)
    at = 3 + length
    return bool(deleted), raw[3:at], raw[at:] or None
