"""Templates in an LMDB store: each stands once, for all objects that are kept as its parameters.

Called by the store's writer, which refers to them and lets go of them, and by whoever reads objects. What a template
is, templates.py says. The log holds what stood there before as it stood, so an object that goes leaves its reference
to the log, and a template goes with the last of the objects and entries that refer to it. Numbers are given once, so
what a process remembers stays true.

    = digest of the template  → number (4 bytes)
    # number                  → how many objects and entries of the log refer to it (8) · template

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


class RecordReader:
    """What one transaction reads of many records, with what they have in common looked up once."""

    def __init__(self, env: LmdbEnvironment, txn: Transaction) -> None:
        self._env, self._txn = env, txn
        self._names: dict[bytes, str] = {}
        self._templates: dict[bytes, bytes] = {}

    def resource(self, number: bytes) -> str:
        name = self._names.get(number)
        if name is None:
            name = self._names[number] = self._env.resource_name(self._txn, number)
        return name

    def of(self, raw: bytes) -> tuple[int, bytes, bytes | Filled]:
        """Revision, stamp and value of a record."""
        if raw[layout.STAMPED] != layout.REFERENCE:
            return layout.decode_object(raw)
        number = raw[layout.OBJECT_HEAD : _AT]
        template = self._templates.get(number)
        if template is None:
            template = self._templates[number] = filled(self._env, self._txn, raw).template
        return layout.revision_of(raw), b"", _tuple(Filled, (template, raw[_AT:]))


def filled(env: LmdbEnvironment, txn: Transaction, raw: bytes) -> Filled:
    """What is stored of an object that refers to a template."""
    number = raw[layout.OBJECT_HEAD : _AT]
    template = env.templates.get(number)
    if template is None:
        row = txn.get(b"#" + number, db=env.templates_table)
        assert row is not None, f"no template {number.hex()}, which an object refers to"
        template = row[8:]
        env.templates.put(number, template, len(template))
    return _tuple(Filled, (template, raw[_AT:]))


def _value(env: LmdbEnvironment, txn: Transaction, key: Key, raw: bytes) -> bytes:
    template, parameters = filled(env, txn, raw)
    return fill(template, key, parameters)


class References:
    """What one transaction refers to and lets go of. Tell it of each record that it writes or that goes, then `write`
    once."""

    def __init__(self, env: LmdbEnvironment, txn: Transaction) -> None:
        self._env, self._txn = env, txn
        self._numbers: dict[bytes, bytes] = {}
        self._more: dict[bytes, int] = {}

    def take(self, revision: int, filled: Filled) -> bytes | None:
        """What to store of an object; None where nothing like it was seen yet: it is stored whole."""
        number = self._numbers.get(filled.template)
        if number is None:
            number = self._number(filled.template)
            if number is None:
                return None
            self._numbers[filled.template] = number
        self._more[number] = self._more.get(number, 0) + 1
        return b"".join((layout.U64.pack(revision), _REFERENCE, number, filled.parameters))

    def take_many(self, template: bytes, count: int) -> bytes:
        """What stands before the parameters in the records of so many objects that are kept with one template."""
        number = self._numbers.get(template)
        if number is None:
            number = self._numbers[template] = self._kept(template)
        self._more[number] = self._more.get(number, 0) + count
        return _REFERENCE + number

    def release(self, raw: bytes) -> None:
        """A record, of an object or of the log, is replaced or gone."""
        if raw[layout.STAMPED] == layout.REFERENCE:
            number = raw[layout.OBJECT_HEAD : _AT]
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
        if found is None and self._env.seen_templates.get(digest) is None:
            self._env.seen_templates.put(digest, True, len(digest))
            return None
        return found or self._new(digest, template)

    def _kept(self, template: bytes) -> bytes:
        """The same for many at once, which need not wait until it was seen."""
        digest = _digest(template)
        return self._txn.get(digest, db=self._env.templates_table) or self._new(digest, template)

    def _new(self, digest: bytes, template: bytes) -> bytes:
        number = self._env.next_template(self._txn)
        self._txn.put(digest, number, db=self._env.templates_table)
        self._txn.put(b"#" + number, layout.U64.pack(0) + template, db=self._env.templates_table)
        return number


def _digest(template: bytes) -> bytes:
    return b"=" + hashlib.blake2b(template, digest_size=32).digest()
