"""The indexes of an LMDB store: kept up by the transaction that changes an object, built anew when it is opened.

Called by the store's writer and when it is opened (lmdb.py). What an index says of an object is declared.py's; an entry
is a row (lmdb_rows.py) without a value.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from apiserver.model.keys import Key
from apiserver.storage import lmdb_layout as layout
from apiserver.storage import lmdb_rows as rows
from apiserver.storage import lmdb_templates as templates
from apiserver.storage.declared import Index, Indexes, entries, table, tallies
from apiserver.storage.lmdb_environment import LmdbEnvironment
from apiserver.storage.lmdb_library import Transaction
from apiserver.storage.protocol import Put
from apiserver.storage.templates import Filled, said_by_own

log = logging.getLogger(__name__)

_FORMS = 4096
"""Forms and indexes that are remembered."""


class Changed(NamedTuple):
    """An object says something else; None: there is none."""

    key: Key
    before: bytes | None
    after: bytes | None


def change(env: LmdbEnvironment, txn: Transaction, index: Index, changed: Changed) -> None:
    """Brings an index up to an object that has, or had, the index's hint in what it says."""
    was, now = (entries(index, changed.key, value) for value in (changed.before, changed.after))
    for row in was - now:
        rows.delete(env, txn, rows.encoded(table(index.name), row))
        _count(env, txn, index, row, -1)
    for row in now - was:
        rows.put(env, txn, rows.encoded(table(index.name), row), b"")
        _count(env, txn, index, row, 1)


class _OfForm(NamedTuple):
    """What a form tells of all values that it makes. `sure`: indexes of which each may have terms; `maybe`: those of
    which one may that says these bytes among its own texts. All others have none."""

    sure: tuple[Index, ...]
    maybe: tuple[tuple[Index, bytes], ...]

    def saying(self, texts: bytes) -> Sequence[Index]:
        """Those that may have terms of a value, or of one of many, whose own texts are among these."""
        more = [index for index, said in self.maybe if said in texts]
        return [*self.sure, *more] if more else self.sure


class ByForm:
    """Which indexes may have terms of values that are made by forms. Of one writer."""

    def __init__(self, indexes: Indexes) -> None:
        self._indexes = indexes
        self._known: dict[tuple[str, bytes], _OfForm] = {}

    def concerned(self, key: Key, full: bytes, put: Put) -> Sequence[Index]:
        """Those that may have terms of a value that is written. `full`: the key as it is stored."""
        if put.like is None or put.whole or put.stamp:
            return [index for index in self._indexes.of(key.resource) if self._has_terms(index, key, put)]
        return self._of_filled(key.resource, full, put.like, lambda: key)

    def before(self, env: LmdbEnvironment, txn: Transaction, resource: str, full: bytes, raw: bytes) -> Sequence[Index]:
        """Those that may have terms of a record that stands there."""
        if raw[layout.STAMPED] != layout.REFERENCE:
            return [index for index in self._indexes.of(resource) if index.hint in raw]
        filled = templates.filled(env, txn, raw)
        return self._of_filled(resource, full, filled, lambda: layout.split(full, resource))

    def concerned_of(self, put: Put, texts: bytes) -> Sequence[Index]:
        """As `concerned`, of values that the form of `put` makes. `texts`: what those say, and their keys as they are
        stored, of one or of many."""
        assert put.like is not None
        return self._of(put.key.resource, put.like, lambda: put.key).saying(texts)

    def _of_filled(self, resource: str, full: bytes, filled: Filled, key: Callable[[], Key]) -> Sequence[Index]:
        found = self._of(resource, filled, key)
        return found.saying(b"\0".join((filled.parameters, full))) if found.maybe else found.sure

    def _of(self, resource: str, filled: Filled, key: Callable[[], Key]) -> _OfForm:
        at = resource, filled.template
        found = self._known.get(at)
        if found is None:
            if len(self._known) >= _FORMS:
                self._known.clear()
            found = self._known[at] = self._of_form(Put(key(), b"", like=filled), filled)
        return found

    def _has_terms(self, index: Index, key: Key, put: Put) -> bool:
        if not put.may_say(index.hint):
            return False
        if not index.by_form or put.like is None or put.stamp:
            return True
        return index in self.concerned(key, b"", put._replace(whole=b""))

    def _of_form(self, put: Put, form: Filled) -> _OfForm:
        sure, maybe = list[Index](), list[tuple[Index, bytes]]()
        for index in self._indexes.of(put.key.resource):
            if index.by_form:
                sure += [index] if entries(index, put.key, put.value) else []
            elif (own := said_by_own(form, index.hint)) is None:
                sure.append(index)
            else:
                maybe.append((index, own))
        return _OfForm(tuple(sure), tuple(maybe))


def tally(env: LmdbEnvironment, txn: Transaction, numbers: str, term: str) -> int:
    """How many entries of a term there are. `numbers`: the table (declared.tallies)."""
    try:
        return int(rows.get(env, txn, rows.encoded(numbers, term)) or 0)
    except ValueError:
        return 0  # what cannot be a term has no entries


def _count(env: LmdbEnvironment, txn: Transaction, index: Index, row: str, more: int) -> None:
    if not index.counted:
        return
    term = row.partition("\0")[0]
    number, full = tally(env, txn, tallies(index.name), term) + more, rows.encoded(tallies(index.name), term)
    if number:
        rows.put(env, txn, full, b"%d" % number)
    else:
        rows.delete(env, txn, full)


def complete(env: LmdbEnvironment, txn: Transaction) -> None:
    """Make the indexes the ones that are declared, of their versions."""
    built, declared = env.built(txn), {index.name: index.version for index in env.indexes.declared.values()}
    if built == declared:
        return
    began = time.monotonic()
    for name in {*built, *declared}:
        if built.get(name) != declared.get(name):
            rows.drop(env, txn, table(name))
            rows.drop(env, txn, tallies(name))
    new = {name for name, version in declared.items() if built.get(name) != version}
    count = _build(env, txn, new) if new else 0
    env.put_built(txn, declared)
    if count:
        names = ", ".join(sorted(new))
        log.info("indexed %d objects (%s) in %.1f s", count, names, time.monotonic() - began)


def _build(env: LmdbEnvironment, txn: Transaction, new: set[str]) -> int:
    """Read every object that an index may have; how many were read."""
    count = 0
    for resource in env.resource_names(txn):
        indexes = [index for index in env.indexes.of(resource) if index.name in new]
        number = env.resource_id(txn, resource)
        if not indexes or number is None:
            continue
        first, end = layout.prefix(number, None, None)
        with txn.cursor(db=env.objects) as cursor:
            there = cursor.iternext() if cursor.set_range(first) else iter(())
            for stored, record in there:
                if stored >= end:
                    break
                count += 1
                key = layout.split(stored, resource)
                value = templates.record(env, txn, key, record).value
                for index in indexes:
                    if index.hint in value:
                        for row in entries(index, key, value):
                            rows.put(env, txn, rows.encoded(table(index.name), row), b"")
                            _count(env, txn, index, row, 1)
    return count
