"""Templates in an LMDB store: each stands once, for all objects that are kept as its parameters.

Called by the store's writer, which refers to them and lets go of them, and by whoever reads objects. What a template
is, templates.py says. One that no object refers to any more goes in the transaction that took the last one away; the
log holds whole values, so nothing else refers to it. Numbers are given once, so what a process remembers stays true.

    = digest of the template  → number (4 bytes)
    # number                  → how many objects refer to it (8) · template

An object that refers to one has REFERENCE where others have the length of their stamp; then come the template's number
and the parameters.
"""

from __future__ import annotations

import hashlib
from typing import Final

from apiserver.model.keys import Key
from apiserver.storage import lmdb_layout as layout
from apiserver.storage.lmdb_environment import LmdbEnvironment
from apiserver.storage.lmdb_library import Transaction
from apiserver.storage.protocol import Record
from apiserver.storage.templates import Filled, fill

_REFERENCE: Final = bytes((layout.REFERENCE,))
_AT: Final = layout.OBJECT_HEAD + 4
_tuple = tuple.__new__


def record(env: LmdbEnvironment, txn: Transaction, key: Key, raw: bytes) -> Record:
    """What is stored of an object, as its record."""
    if raw[layout.STAMPED] != layout.REFERENCE:
        return layout.record(key, raw)
    return _tuple(Record, (key, layout.revision_of(raw), _value(env, txn, key, raw), b""))


def plain(env: LmdbEnvironment, txn: Transaction, key: Key, raw: bytes) -> bytes:
    """What is stored of an object, as it would be stored without a template."""
    if raw[layout.STAMPED] != layout.REFERENCE:
        return raw
    return layout.encode_object(layout.revision_of(raw), b"", _value(env, txn, key, raw))


def _value(env: LmdbEnvironment, txn: Transaction, key: Key, raw: bytes) -> bytes:
    number = raw[layout.OBJECT_HEAD : _AT]
    template = env.templates.get(number)
    if template is None:
        row = txn.get(b"#" + number, db=env.templates_table)
        assert row is not None, f"no template {number.hex()}, which {key} refers to"
        template = row[8:]
        env.templates.put(number, template, len(template))
    return fill(template, key, raw[_AT:])


class References:
    """What one transaction refers to and lets go of. Tell it of each object that it reads and writes, then `write`
    once."""

    def __init__(self, env: LmdbEnvironment, txn: Transaction) -> None:
        self._env, self._txn = env, txn
        self._numbers: dict[bytes, bytes] = {}
        self._more: dict[bytes, int] = {}
        self._held: dict[bytes, bytes] = {}
        """The template that an object refers to at this point, of those that were read or written and do."""

    def read(self, key: Key, full: bytes) -> bytes | None:
        """What is stored of an object, whole. `full`: its key as stored."""
        raw = self._txn.get(full)
        return None if raw is None else self.whole(key, full, raw)

    def whole(self, key: Key, full: bytes, raw: bytes) -> bytes:
        """The same of one that was read."""
        if raw[layout.STAMPED] != layout.REFERENCE:
            return raw
        self._held[full] = raw[layout.OBJECT_HEAD : _AT]
        return plain(self._env, self._txn, key, raw)

    def take(self, full: bytes, revision: int, filled: Filled) -> bytes | None:
        """What to store of an object; None where nothing like it was seen yet: it is stored whole."""
        number = self._numbers.get(filled.template)
        if number is None:
            number = self._number(filled.template)
            if number is None:
                return None
            self._numbers[filled.template] = number
        self._more[number] = self._more.get(number, 0) + 1
        self._held[full] = number
        return b"".join((layout.U64.pack(revision), _REFERENCE, number, filled.parameters))

    def take_many(self, template: bytes, count: int) -> bytes:
        """What stands before the parameters in the records of so many objects that are kept with one template."""
        number = self._numbers.get(template)
        if number is None:  # so many need not wait until it was seen once
            number = self._numbers[template] = self._number(template) or self._number(template) or b""
        self._more[number] = self._more.get(number, 0) + count
        return _REFERENCE + number

    def release(self, full: bytes) -> None:
        """What was stored of an object that was read is replaced or gone."""
        number = self._held.pop(full, None)
        if number is not None:
            self._more[number] = self._more.get(number, 0) - 1

    def write(self) -> None:
        for number, more in self._more.items():
            key = b"#" + number
            row = self._txn.get(key, db=self._env.templates_table)
            assert row is not None
            count = int.from_bytes(row[:8], "big") + more
            if count:
                self._txn.put(key, layout.U64.pack(count) + row[8:], db=self._env.templates_table)
            else:
                self._txn.delete(key, db=self._env.templates_table)
                self._txn.delete(_digest(row[8:]), db=self._env.templates_table)

    def _number(self, template: bytes) -> bytes | None:
        """None where this process sees the template for the first time: alone, it would cost more than it spares."""
        digest = _digest(template)
        found = self._txn.get(digest, db=self._env.templates_table)
        if found is None:
            if self._env.seen_templates.get(digest) is None:
                self._env.seen_templates.put(digest, True, len(digest))
                return None
            found = self._env.next_template(self._txn)
            self._txn.put(digest, found, db=self._env.templates_table)
            self._txn.put(b"#" + found, layout.U64.pack(0) + template, db=self._env.templates_table)
        return found


def _digest(template: bytes) -> bytes:
    return b"=" + hashlib.blake2b(template, digest_size=32).digest()
