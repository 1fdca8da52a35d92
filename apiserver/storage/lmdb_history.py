"""What the log of an LMDB store tells: the changes since a revision, and the objects as of one.

Called by lmdb.py inside its read transaction. An entry of the log holds only the record that stood *before* it. What it
wrote is found, in this order: in a later entry of the same key that was read anyway; in the objects, if nothing changed
the key since; else in the entry that changed it next, which the table `next` names. So a page of the log costs the
same wherever it ends and however often a key was written after it.

Every entry whose revision is greater than `oldest` has the later changes of its key in the log as well: the log is cut
only at its old end, and a write without log moves `oldest` past itself.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from itertools import islice, takewhile
from operator import itemgetter

from apiserver.model.keys import Key
from apiserver.storage import lmdb_layout as layout
from apiserver.storage import lmdb_templates as templates
from apiserver.storage.lmdb_environment import LmdbEnvironment
from apiserver.storage.lmdb_library import Transaction
from apiserver.storage.protocol import Change, Compacted, Swept

_number = int.from_bytes

_BATCH = 8
"""Rows that are asked for at first."""

Row = tuple[bytes, bytes]
"""A key as LMDB holds it, and an object's record."""


def changes(env: LmdbEnvironment, txn: Transaction, after: int, limit: int, swept: Swept | None = None) -> list[Change]:
    """See Store.changes."""
    state = env.state(txn)
    if after < state.oldest:
        raise Compacted(after, state.oldest)
    if after >= state.revision or limit <= 0:
        return []
    cursor = txn.cursor(db=env.log)
    if not cursor.set_range(layout.U64.pack(after + 1)):
        return []
    found: list[Change] = []
    written: dict[int, tuple[bytes, bytes, bytes | None, bytes | None]] = {}
    """By place in what is found: the entry's number, key and previous record, and what it wrote if that is known."""
    last: dict[bytes, int] = {}
    """The place of the last entry of a key, if that was no deletion."""
    said, wanted = templates.RecordReader(env, txn), dict[bytes, bool]()
    for number, raw in cursor.iternext():
        if raw[0] == layout.SWEPT and swept is not None:
            resource = layout.resource_of_entry(raw)
            if resource not in wanted:
                wanted[resource] = swept(said.resource(resource))
            if not wanted[resource]:
                continue
        deleted, full, previous = layout.decode_entry(raw)
        if previous is not None and (earlier := last.pop(full, None)) is not None:
            written[earlier] = (*written[earlier][:3], previous)
        if deleted:
            found.append(_change(said, number, full, previous, None))
        else:
            last[full] = len(found)
            written[len(found)] = number, full, previous, None
            found.append(_NOT_YET)
        if len(found) == limit:
            break
    for at, (number, full, previous, record) in written.items():
        found[at] = _change(said, number, full, previous, record or _written(env, txn, number, full))
    return found


def _written(env: LmdbEnvironment, txn: Transaction, number: bytes, full: bytes) -> bytes:
    """The record that the log entry `number`, which is no deletion, wrote."""
    raw = txn.get(full)
    if raw is not None and raw[:8] == number:
        return raw
    following = txn.get(number, db=env.next)
    entry = None if following is None else txn.get(following, db=env.log)
    previous = None if entry is None else layout.decode_entry(entry)[2]
    assert previous is not None, f"the log does not tell what revision {layout.revision_of(number)} wrote"
    return previous


def _change(
    said: templates.RecordReader, number: bytes, full: bytes, previous: bytes | None, written: bytes | None
) -> Change:
    key = layout.split(full, said.resource(full[:4]))
    at, stamp, before = said.of(previous) if previous is not None else (0, b"", None)
    if written is None:
        return Change(_number(number, "big"), key, None, before, at, stamp)
    revision, stamp, value = said.of(written)
    return Change(revision, key, value, before, at, stamp)


_NOT_YET = Change(0, Key("", "", "", ""), None, None, 0, b"")
"""Stands where a change will, whose value is looked up later."""

Before = dict[bytes, bytes | None]
"""Keys (as LMDB holds them) that changed since some revision, with their record then; None: it did not exist."""


def before(env: LmdbEnvironment, txn: Transaction, first: bytes, end: bytes, at: int) -> Before:
    """What in the range [first, end) changed after revision `at`. Costs a walk over the log since then."""
    found: Before = {}
    cursor = txn.cursor(db=env.log)
    if not cursor.set_range(layout.U64.pack(at + 1)):
        return found
    resource = first[:4]
    for raw in cursor.iternext(keys=False, values=True):
        if layout.resource_of_entry(raw) == resource:
            _, full, previous = layout.decode_entry(raw)
            if first <= full < end and full not in found:
                found[full] = previous
    return found


def rows(txn: Transaction, first: bytes, end: bytes, changed: Before) -> Iterator[Row]:
    """The objects whose key is in [first, end), in order: as they are now but for `changed`, which are as they were."""
    cursor = txn.cursor()
    found = cursor.iternext() if cursor.set_range(first) else iter(())
    if not changed:
        for row in found:
            if row[0] >= end:
                return
            yield row
        return
    old = [(stored, raw) for stored, raw in sorted(changed.items(), reverse=True) if raw is not None]
    for row in found:
        if row[0] >= end:
            break
        while old and old[-1][0] <= row[0]:
            yield old.pop()
        if row[0] not in changed:
            yield row
    yield from reversed(old)


def page(txn: Transaction, first: bytes, end: bytes, limit: int) -> tuple[list[Row], bool]:
    """The first `limit` of `rows` as they are now, and whether there are more. Reads a little behind `end`, never more
    than three times what it gives: asking LMDB for many at once is what makes it quick."""
    cursor = txn.cursor()
    if not cursor.set_range(first):
        return [], False
    found: list[Row] = []
    rows, size = cursor.iternext(), _BATCH
    while len(found) <= limit:
        batch = list(islice(rows, min(size, limit + 1 - len(found))))
        if not batch:
            break
        if batch[-1][0] >= end:
            found += batch[: bisect_left(batch, end, key=itemgetter(0))]
            break
        found += batch
        size *= 4
    more = len(found) > limit
    return found[:limit] if more else found, more


def count(txn: Transaction, first: bytes, end: bytes, changed: Before) -> int:
    """How many `rows` of these there are; the loop runs in C."""
    cursor = txn.cursor()
    keys = takewhile(end.__gt__, cursor.iternext(keys=True, values=False) if cursor.set_range(first) else ())
    last = deque(enumerate(keys, 1), maxlen=1)
    return (last[0][0] if last else 0) + fewer(txn, changed, first)


def fewer(txn: Transaction, changed: Before, first: bytes = b"") -> int:
    """By how many more there were before `changed`, from `first` on, than there are now."""
    return sum((raw is not None) - (txn.get(stored) is not None) for stored, raw in changed.items() if stored >= first)
