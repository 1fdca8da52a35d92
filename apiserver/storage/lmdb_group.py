"""One LMDB write transaction of a store: calls are applied one by one, each wholly or not at all.

Made by the writer (lmdb_writer) for what it commits together. A call is checked before anything of it is applied, so a
failed precondition leaves no trace. The transaction also cuts the log at its old end (lmdb_retention).

Worked example, three calls in one transaction, the store at revision 100:

    take(Put(a), Put(b))              → [101, 102]
    take(Put(c), Check(a, 100))       → Conflict(a, 100, 101): c is not written, no revision taken
    take(Delete(a, expect=101))       → [103]
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, cast

from apiserver.model.keys import Key
from apiserver.storage import alike, limits
from apiserver.storage import lmdb_indexes as indexes
from apiserver.storage import lmdb_layout as layout
from apiserver.storage import lmdb_rows as rows
from apiserver.storage import lmdb_templates as templates
from apiserver.storage.declared import Index
from apiserver.storage.lmdb_alike import AlikeRows, Upkeep
from apiserver.storage.lmdb_counts import Counted, counts
from apiserver.storage.lmdb_environment import LmdbEnvironment, State
from apiserver.storage.lmdb_library import Transaction
from apiserver.storage.lmdb_retention import Retention
from apiserver.storage.lmdb_sweep import Gone, all_of
from apiserver.storage.lmdb_templates import References
from apiserver.storage.protocol import (
    ABSENT,
    NEVER,
    Check,
    CheckNumber,
    CheckRow,
    Conflict,
    Delete,
    DeleteAll,
    DeleteRow,
    Op,
    Put,
    PutAlike,
    PutRow,
    RoleLost,
    RowConflict,
    RowOp,
    SingleOp,
    TooMany,
    check_apart,
)
from apiserver.storage.templates import Filled

_OF_ROWS = (PutRow, DeleteRow, CheckRow)
_tuple = tuple.__new__


class Under(NamedTuple):
    """What a write of who has a role is done under: see protocol.Store.under. `full`: the row's key."""

    role: str
    full: bytes
    expected: bytes | None
    lost: Callable[[], None]

    @staticmethod
    def of(role: CheckRow, lost: Callable[[], None]) -> Under:
        expected = None if role.expect is ABSENT else role.expect
        return Under(role.row, rows.encoded(role.table, role.row), expected, lost)

    def check(self, env: LmdbEnvironment, txn: Transaction) -> None:
        """Raises RoleLost."""
        if rows.get(env, txn, self.full) != self.expected:
            raise RoleLost(self.role)


class _Effect(NamedTuple):
    """What an op does once its call is known to pass. `previous`: as it stands; `put` None: deletion; `whole`: the
    record, b"" where nothing but `put.like` says it; `marked`: of a marked resource."""

    key: Key
    full: bytes
    previous: bytes | None
    put: Put | None
    whole: bytes
    revision: int
    marked: bool

    @property
    def last(self) -> int:
        """The revision at its end."""
        return self.revision

    @property
    def like(self) -> Filled | None:
        """See Put."""
        return self.put.like if self.put is not None and not self.put.stamp else None

    @property
    def record(self) -> bytes | None:
        """What stands there then, None for nothing."""
        return self.encoded(self.put) if self.put is not None else None

    def encoded(self, put: Put) -> bytes:
        """As it is stored without a template. Only to be asked for where it is needed: it may have to be made."""
        return self.whole or layout.encode_object(self.revision, put.stamp, put.value)


class _Entries:
    """What a call adds to the log: its entries, and for each record that stood there the entry that took it away."""

    __slots__ = ("entries", "following", "size")

    def __init__(self) -> None:
        self.entries: list[tuple[bytes, bytes]] = []
        self.following: list[tuple[bytes, bytes]] = []
        self.size = 0

    def add(self, revision: int, full: bytes, deletion: int, previous: bytes | None) -> None:
        number, entry = layout.U64.pack(revision), layout.encode_entry(full, deletion, previous)
        self.size += len(entry)
        self.entries.append((number, entry))
        if previous is not None:
            self.following.append((previous[:8], number))

    def write(self, env: LmdbEnvironment, txn: Transaction) -> None:
        if self.entries:
            txn.cursor(db=env.log).putmulti(self.entries, append=True)
        if self.following:
            txn.cursor(db=env.next).putmulti(self.following)


class Group:
    """See the module's head. `interned`: the names of resources that came with it."""

    def __init__(self, environment: LmdbEnvironment, txn: Transaction, forms: indexes.ByForm) -> None:
        self._env, self._txn = environment, txn
        self._before = self._state = environment.state(txn)
        self._counted = Counted()
        self._references = References(environment, txn)
        self._forms = forms
        self.interned: dict[str, bytes] = {}

    def take(self, ops: Sequence[Op], *, logged: bool, under: Under | None) -> list[int] | Exception:
        """Applies a call; the revisions of its ops, or why not: then nothing of it was applied."""
        try:
            if under is not None:
                under.check(self._env, self._txn)
            many = self._alike(ops) if PutAlike in map(type, ops) else None
            revisions, effects, changed = self._check(ops) if many is None else ([], [], {})
        except Exception as refused:  # Conflict; or a caller's mistake, which is to hurt no other call
            return refused
        if many is not None:
            self._state = many.write(self._state, logged=logged)
            return [self._state.revision]
        self._apply(effects, logged=logged)
        for full, value in changed.items():
            if value is None:
                rows.delete(self._env, self._txn, full)
            else:
                rows.put(self._env, self._txn, full, value)
        return revisions

    def _alike(self, ops: Sequence[Op]) -> AlikeRows | None:
        """Those that a call creates together, where that is all it does and nothing is in the way."""
        if len(ops) != 1 or not isinstance(ops[0], PutAlike):
            return None
        kept = Upkeep(self._counted, self._references, self._forms, self.interned)
        found = AlikeRows(self._env, self._txn, kept, ops[0])
        return found if found.is_usual() else None

    def _apply(self, effects: list[_Effect | Gone], *, logged: bool) -> None:
        entries, objects, taken = _Entries(), list[tuple[bytes, bytes]](), dict[bytes, bytes]()
        state, number, last_marked = self._state, self._counted.number, self._state.marked
        for effect in effects:
            if isinstance(effect, Gone):
                last_marked = max(last_marked, self._sweep(effect, entries, logged=logged))
                continue
            _, full, previous, _, _, revision, marked = effect
            if taken:
                previous = taken.pop(full, previous)
            self._index(effect, previous)
            if marked:
                last_marked = revision
                self._counted.mark(full, revision)
            if previous is not None and not logged:
                self._references.release(previous)
            if effect.put is None:
                self._put(objects)
                self._txn.delete(full, db=self._env.objects)
                number(full, -1)
            else:
                like = effect.like
                short = self._references.take(revision, like) if like is not None else None
                if short is not None:
                    taken[full] = short
                objects.append((full, short or effect.encoded(effect.put)))
                if previous is None:
                    number(full, 1)
            if logged:
                entries.add(revision, full, 0 if effect.put is not None else layout.DELETED, previous)
        self._put(objects)
        entries.write(self._env, self._txn)
        if effects:
            end = effects[-1].last
            oldest = state.oldest if logged else end
            self._state = State(
                end, oldest, last_marked, state.entries + len(entries.entries), state.size + entries.size
            )

    def _sweep(self, found: Gone, entries: _Entries, *, logged: bool) -> int:
        """Returns the revision at which a marked object changed, if these are."""
        objects, before, delete = self._env.objects, self._forms.before, self._txn.delete
        resource, cluster, revision = found.resource, found.cluster, found.revision
        for full, raw in found.rows:
            for index in before(self._env, self._txn, resource, full, raw):
                key = layout.split(full, resource)
                value = templates.record(self._env, self._txn, key, raw).value
                indexes.change(self._env, self._txn, index, indexes.Changed(key, value, None))
            delete(full, db=objects)
            if logged:
                entries.add(revision, full, layout.SWEPT, raw)
            else:
                self._references.release(raw)
            revision += 1
        self._counted.gone(cluster, found.number, len(found.rows))
        if resource not in self._env.marked:
            return 0
        self._counted.mark(found.rows[-1][0], revision - 1)
        return revision - 1

    def _index(self, effect: _Effect, previous: bytes | None) -> None:
        """Brings up the indexes of which what they look for may stand in what was there or in what comes."""
        key, full, put = effect.key, effect.full, effect.put
        found: Collection[Index] = self._forms.concerned(key, full, put) if put is not None else ()
        if previous is not None:
            had = self._forms.before(self._env, self._txn, key.resource, full, previous)
            found = [*found, *(index for index in had if index not in found)] if found else had
        if found:
            was = templates.record(self._env, self._txn, key, previous).value if previous is not None else None
            changed = indexes.Changed(key, was, put.value if put is not None else None)
            for index in found:
                indexes.change(self._env, self._txn, index, changed)

    def _put(self, objects: list[tuple[bytes, bytes]]) -> None:
        """Writes them and empties the list."""
        if objects:
            self._txn.cursor(db=self._env.objects).putmulti(objects)
            objects.clear()

    def _check(self, ops: Sequence[Op]) -> tuple[list[int], list[_Effect | Gone], dict[bytes, bytes | None]]:
        """The revision of each op, what to do, and the rows that are other ones then (None: gone)."""
        if PutAlike not in map(type, ops):
            return self._check_each(cast("Sequence[SingleOp]", ops))
        single, numbers = alike.expanded(ops)
        revisions, effects, changed = self._check_each(single)
        return alike.last(revisions, numbers), effects, changed

    def _check_each(self, ops: Sequence[SingleOp]) -> tuple[list[int], list[_Effect | Gone], dict[bytes, bytes | None]]:
        revision = self._state.revision
        revisions: list[int] = []
        effects: list[_Effect | Gone] = []
        own: dict[bytes, _Effect] = {}
        changed: dict[bytes, bytes | None] = {}
        checks: list[CheckNumber] = []
        swept: set[str] = set()
        check_apart(ops)
        for op in ops:
            if isinstance(op, _OF_ROWS):
                self._check_row(op, changed)
                revisions.append(0)
                continue
            if isinstance(op, CheckNumber):
                checks.append(op)
                revisions.append(0)
                continue
            if isinstance(op, DeleteAll):
                gone = self._all_of(op, revision)
                effects += gone
                swept.add(op.cluster)
                revision += sum(len(each.rows) for each in gone)
                revisions.append(revision if gone else 0)
                continue
            key = op.key
            full = self._env.intern(self._txn, key.resource, self.interned) + limits.tail(key)
            limits.check_length(key, len(full))
            if full in own:
                previous = own[full].record
            elif swept and key.cluster in swept and not key.resource.startswith("~"):
                previous = None  # it goes with this call
            else:
                previous = self._txn.get(full)
            if op.expect is not None:
                _expect(key, op.expect, previous)
            if isinstance(op, Check) or (isinstance(op, Delete) and previous is None):
                revisions.append(0)
                continue
            revision += 1
            put, whole = (op, self._record(op, revision)) if isinstance(op, Put) else (None, b"")
            marked = key.resource in self._env.marked
            effect = own[full] = _tuple(_Effect, (key, full, previous, put, whole, revision, marked))
            effects.append(effect)
            revisions.append(revision)
        for check in checks:
            self._check_number(check, effects)
        return revisions, effects, changed

    def _all_of(self, op: DeleteAll, revision: int) -> list[Gone]:
        """`revision`: the last that was taken."""
        numbers = self._counted.of_cluster(self._env, self._txn, op.cluster)
        named = sorted((self._name(number), number) for number in numbers)
        return all_of(self._env, self._txn, named, op, revision)

    def _name(self, number: bytes) -> str:
        """Of a resource, which may be new in this transaction."""
        new = (name for name, each in self.interned.items() if each == number) if self.interned else ()
        return next(iter(new), "") or self._env.resource_name(self._txn, number)

    def _check_number(self, check: CheckNumber, effects: list[_Effect | Gone]) -> None:
        """Of a call with all that it does."""
        number = self._counted.total(self._env, self._txn, check.cluster, check.besides)
        changed = (
            (e.resource, e.cluster, -len(e.rows))
            if isinstance(e, Gone)
            else (e.key.resource, e.key.cluster, (e.previous is None) - (e.put is None))
            for e in effects
        )
        ours = (more for resource, at, more in changed if at == check.cluster and counts(resource, check.besides))
        more = sum(ours)
        if more > 0 and number + more > check.most:
            raise TooMany(check.cluster, number, check.most)

    def _check_row(self, op: RowOp, changed: dict[bytes, bytes | None]) -> None:
        full = rows.encoded(op.table, op.row)
        if op.expect is not None:
            found = changed[full] if full in changed else rows.get(self._env, self._txn, full)
            if found != (None if op.expect is ABSENT else op.expect):
                raise RowConflict(op.table, op.row)
        if not isinstance(op, CheckRow):
            changed[full] = op.value if isinstance(op, PutRow) else None

    @staticmethod
    def _record(op: Put, revision: int) -> bytes:
        """See _Effect.whole."""
        if op.stamp:
            limits.check_stamp(op.key, op.stamp)
        return layout.encode_object(revision, op.stamp, op.whole) if op.whole or op.like is None else b""

    def finish(self, retention: Retention) -> bool:
        """Cut the log and write the state row. False: no object was changed."""
        if self._state == self._before:
            return False
        self._counted.write(self._env, self._txn)
        state = retention.cut(self._txn, self._references, self._before, self._state)
        self._references.write()
        self._env.put_state(self._txn, state)
        return True


def _expect(key: Key, expected: int, previous: bytes | None) -> None:
    found = NEVER if previous is None else layout.revision_of(previous)
    if found != expected:
        raise Conflict(key, expected, found)
