"""How the rows of tables stand in LMDB, and how they are read and written inside a transaction.

Called by the LMDB store's reader and writer. All tables share one of LMDB's:

    name of the table · \\0 · the row's key   → its value

LMDB's keys end at 511 bytes. A longer one keeps a prefix and a hash of the rest, and then the whole key stands before
the value: length (2 bytes) · key · value. Rows that have such a prefix in common are put in order when they are read.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from typing import Final

from apiserver.storage.limits import check_row
from apiserver.storage.lmdb_environment import LmdbEnvironment
from apiserver.storage.lmdb_layout import LONGEST
from apiserver.storage.lmdb_library import Transaction
from apiserver.storage.protocol import Row

_PREFIX: Final = LONGEST - 64
_LENGTH: Final = struct.Struct(">H")
_tuple = tuple.__new__


def encoded(table: str, row: str) -> bytes:
    """A whole key. Raises ValueError for what cannot be stored."""
    return b"%s\0%s" % (table.encode(), check_row(row))


def get(env: LmdbEnvironment, txn: Transaction, full: bytes) -> bytes | None:
    """The value of a row, by its whole key."""
    raw = txn.get(_stored(full), db=env.rows)
    return raw if raw is None or len(full) < LONGEST else raw[2 + len(full) :]


def put(env: LmdbEnvironment, txn: Transaction, full: bytes, value: bytes) -> None:
    head = b"" if len(full) < LONGEST else _LENGTH.pack(len(full)) + full
    txn.put(_stored(full), head + value, db=env.rows)


def delete(env: LmdbEnvironment, txn: Transaction, full: bytes) -> None:
    txn.delete(_stored(full), db=env.rows)


def scan(
    env: LmdbEnvironment, txn: Transaction, table: str, prefix: str, after: str | None, limit: int | None
) -> list[Row]:
    """See protocol.View."""
    try:
        begin = encoded(table, prefix)
        first = begin if after is None else max(begin, encoded(table, after) + b"\0")
    except ValueError:
        return []
    found: list[Row] = []
    skip = len(table) + 1
    for full, value in _from(env, txn, first):
        if len(found) == limit or not full.startswith(begin):
            break
        found.append(_tuple(Row, (full[skip:].decode(), value)))
    return found


def drop(env: LmdbEnvironment, txn: Transaction, table: str) -> None:
    """Remove all rows of a table."""
    begin = encoded(table, "")
    cursor = txn.cursor(db=env.rows)
    while cursor.set_range(begin) and cursor.key().startswith(begin):
        cursor.delete()


def _from(env: LmdbEnvironment, txn: Transaction, first: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Whole keys and values of all rows from `first` on, in order."""
    cursor = txn.cursor(db=env.rows)
    if not cursor.set_range(first[:_PREFIX]):
        return
    alike: list[tuple[bytes, bytes]] = []
    for stored, raw in cursor.iternext():
        if alike and not stored.startswith(alike[0][0][:_PREFIX]):
            yield from sorted(alike)
            alike = []
        if len(stored) <= _PREFIX:
            if stored >= first:
                yield stored, raw
        elif (row := _whole(stored, raw))[0] >= first:
            alike.append(row)
    yield from sorted(alike)


def _whole(stored: bytes, raw: bytes) -> tuple[bytes, bytes]:
    if len(stored) < LONGEST:
        return stored, raw
    end = 2 + _LENGTH.unpack_from(raw)[0]
    return raw[2:end], raw[end:]


def _stored(full: bytes) -> bytes:
    """The key as LMDB holds it: one of LONGEST bytes is always a hashed one."""
    if len(full) < LONGEST:
        return full
    return full[:_PREFIX] + hashlib.blake2b(full, digest_size=32).hexdigest().encode()
