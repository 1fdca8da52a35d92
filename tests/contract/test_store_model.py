"""Every store against a naive model: random transactions of objects and rows, pages, old revisions, views held open,
fills, compaction, clearing, reopening."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from itertools import product
from pathlib import Path

import orjson
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from apiserver.model.keys import Key
from apiserver.model.tables import Table
from apiserver.storage.declared import Declared, Index, IndexEntry
from apiserver.storage.protocol import (
    ABSENT,
    NEVER,
    Absent,
    Change,
    Check,
    CheckRow,
    Compacted,
    Conflict,
    Delete,
    DeleteAll,
    DeleteRow,
    Op,
    Put,
    PutRow,
    Record,
    RowConflict,
    RowOp,
    Store,
    View,
)
from apiserver.storage.templates import Kind, cut

RESOURCES = ["a", "b.x:id"]
CLUSTERS = ["r", "ro", "s"]
KEYS = st.builds(
    Key,
    st.sampled_from(RESOURCES),
    st.sampled_from(CLUSTERS),
    st.sampled_from(["", "n", "nn"]),
    st.sampled_from(["a", "aa", "é"]),
)
VALUES = st.tuples(st.binary(max_size=3), st.sampled_from([b"", b"", b"st"]))
EXPECT = st.sampled_from(["none", "none", "right", "right", "never", "wrong"])
OPS = st.lists(
    st.tuples(st.sampled_from(["put", "put", "like", "like", "delete", "check", "all"]), KEYS, VALUES, EXPECT),
    max_size=5,
)
TABLES = [Table.FLEET, Table.KEPT_SECRETS]
NAMES = ["", "a", "a\0b", "ab", "x" * 600 + "a", "x" * 600 + "b"]
ROWS = st.tuples(st.sampled_from(TABLES), st.sampled_from(NAMES))
ROW_OPS = st.lists(st.tuples(st.sampled_from(["put", "put", "delete", "check"]), ROWS, VALUES, EXPECT), max_size=4)
RowAt = tuple[Table, str]
LETTERS = Index("letters", 1, lambda key, value: {key.name[:1], *(chr(each) for each in value)}, b"", counted=True)
SOME = Index("some", 1, lambda _, value: [value.hex()], b"\x01", frozenset({"b.x"}))
INDEXES = (LETTERS, SOME)
Drawn = tuple[list[tuple[str, Key, tuple[bytes, bytes], str]], list[tuple[str, RowAt, tuple[bytes, bytes], str]], bool]

State = dict[Key, tuple[int, bytes, bytes]]


class Model:
    """Every state there ever was, and every change."""

    def __init__(self, revision: int) -> None:
        self.revision = self.oldest = revision
        self.states: dict[int, State] = {revision: {}}
        self.log: list[Change] = []
        self.rows: dict[RowAt, bytes] = {}

    @property
    def now(self) -> State:
        return self.states[self.revision]

    def ops(self, drawn: list[tuple[str, Key, tuple[bytes, bytes], str]]) -> list[Op]:
        """Preconditions relate to the state before the write; what that means for a key named twice, `write` tells."""
        ops: list[Op] = []
        for verb, key, (value, stamp), kind in drawn:
            found = self.now.get(key, (NEVER, b"", b""))[0]
            expect = {"none": None, "right": found, "never": NEVER, "wrong": found + 1}[kind]
            if verb == "put":
                ops.append(Put(key, value, expect, stamp))
            elif verb == "like":
                said = orjson.dumps([key.cluster, value.hex()])
                ops.append(Put(key, said, expect, stamp, cut(key, said, [(Kind.TEXT, value.hex())])))
            elif verb == "delete":
                ops.append(Delete(key, expect))
            elif verb == "all":
                ops.append(DeleteAll(key.cluster, self.revision if kind in ("none", "right") else self.revision - 3))
            else:
                ops.append(Check(key, found if expect is None else expect))
        return ops

    def row_ops(self, drawn: list[tuple[str, RowAt, tuple[bytes, bytes], str]]) -> list[Op]:
        """As `ops`."""
        ops: list[Op] = []
        for verb, at, (value, _), kind in drawn:
            right: bytes | Absent = self.rows.get(at, ABSENT)
            expect = {"none": None, "right": right, "never": ABSENT, "wrong": b"another"}[kind]
            if verb == "put":
                ops.append(PutRow(*at, value, expect))
            elif verb == "delete":
                ops.append(DeleteRow(*at, None if expect is ABSENT else expect))
            else:
                ops.append(CheckRow(*at, right if expect is None else expect))
        return ops

    def all_of(self, ops: list[Op]) -> dict[str, list[Key]]:
        """What goes of each workspace of which a call removes all."""
        found: dict[str, list[Key]] = {}
        for op in ops:
            if isinstance(op, DeleteAll):
                others = [o for o in ops if isinstance(o, Put | Delete) and o.key.cluster == op.cluster]
                if others or op.cluster in found:
                    raise ValueError(f"of {op.cluster} all goes, and something else is written")
                found[op.cluster] = sorted(key for key in self.now if key.cluster == op.cluster)
        return found

    def alone(self, ops: list[Op]) -> list[Op]:
        """The same with each object that goes for itself."""
        gone = self.all_of(ops)
        for op in ops:
            if isinstance(op, DeleteAll):
                for key in gone[op.cluster]:
                    if self.now[key][0] > op.since:
                        raise Conflict(key, op.since, self.now[key][0])
        return [each for op in ops for each in (map(Delete, gone[op.cluster]) if isinstance(op, DeleteAll) else [op])]

    def write(self, ops: list[Op], logged: bool) -> list[int]:
        gone, answers = self.all_of(ops), self.write_each(self.alone(ops), logged)
        answer = []
        for op in ops:
            these = [answers.pop(0) for _ in (gone[op.cluster] if isinstance(op, DeleteAll) else [op])]
            answer.append(max(these, default=0))
        return answer

    def write_each(self, ops: list[Op], logged: bool) -> list[int]:
        revision, state, states, log, answer = self.revision, self.now, {}, [], []
        rows = dict(self.rows)
        for op in ops:
            if isinstance(op, RowOp):
                if op.expect is not None and rows.get((op.table, op.row), ABSENT) != op.expect:
                    raise RowConflict(op.table, op.row)
                if isinstance(op, DeleteRow):
                    rows.pop((op.table, op.row), None)
                elif isinstance(op, PutRow):
                    rows[op.table, op.row] = op.value
                answer.append(0)
                continue
            before = state.get(op.key)
            found = before[0] if before else NEVER
            if op.expect is not None and op.expect != found:
                raise Conflict(op.key, op.expect, found)
            if isinstance(op, Check) or (isinstance(op, Delete) and not before):
                answer.append(0)
                continue
            revision += 1
            answer.append(revision)
            state = {k: v for k, v in state.items() if k != op.key}
            previous = before[1] if before else None
            if isinstance(op, Put):
                state[op.key] = (revision, op.value, op.stamp)
                log.append(Change(revision, op.key, op.value, previous, found, op.stamp))
            else:
                assert before
                log.append(Change(revision, op.key, None, previous, found, before[2]))
            states[revision] = state
        self.states.update(states)
        self.revision, self.rows = revision, rows
        if logged:
            self.log += log
        elif log:
            self.oldest, self.log = revision, []
        return answer

    def scan(self, at: int, *where: str | None) -> list[Record]:
        return [
            Record(key, *self.states[at][key])
            for key in sorted(self.states[at])
            if all(asked in (None, held) for asked, held in zip(where, key, strict=False))
        ]

    def clear(self, revision: int) -> None:
        self.revision = self.oldest = revision
        self.states[revision], self.log, self.rows = {}, [], {}

    def compact(self, keep: int) -> None:
        gone = self.log[: max(0, len(self.log) - keep)]
        if gone:
            self.oldest, self.log = gone[-1].revision, self.log[len(gone) :]


class Machine(RuleBasedStateMachine):
    opener: Callable[..., Store]
    indexes: tuple[Index, ...] = INDEXES
    view: View | None = None

    @initialize()
    def open(self) -> None:
        self.viewing = ExitStack()
        self.directory = tempfile.TemporaryDirectory()
        self.store = self.reopened()
        self.model = Model(self.store.revision())

    def reopened(self, start: int | None = None) -> Store:
        return type(self).opener(
            Path(self.directory.name) / "store", sync=False, start=start, declared=Declared(self.indexes)
        )

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.look_away()
            self.store.close()
            self.directory.cleanup()

    @rule(writes=st.lists(st.tuples(OPS, ROW_OPS, st.sampled_from([True] * 12 + [False])), min_size=1, max_size=5))
    def write(self, writes: list[Drawn]) -> None:
        pairs = []
        for drawn, drawn_rows, logged in writes:
            ops = [*self.model.row_ops(drawn_rows), *self.model.ops(drawn)]
            write = self.store.write if logged else self.store.fill
            pairs.append((ops, write(*ops), self.expected(ops, logged)))
        for ops, answer, expected in pairs:
            error = answer.exception()
            if isinstance(expected, ValueError):
                assert isinstance(error, ValueError)
            elif isinstance(expected, Conflict) and any(isinstance(op, DeleteAll) for op in ops):
                assert isinstance(error, Conflict)  # which of several is told, their order says
            elif isinstance(expected, Conflict):
                assert isinstance(error, Conflict)
                assert type(error) is type(expected)
                assert (error.key, error.expected, error.revision) == (
                    expected.key,
                    expected.expected,
                    expected.revision,
                )
            else:
                assert answer.result() == expected

    def expected(self, ops: list[Op], logged: bool) -> list[int] | Conflict | ValueError:
        try:
            return self.model.write(ops, logged)
        except (Conflict, ValueError) as refused:
            return refused

    @rule(keep=st.integers(0, 20))
    def compact(self, keep: int) -> None:
        self.model.compact(keep)
        self.store.compact(keep)

    @rule(sure=st.sampled_from([True, False, False]))
    def clear(self, sure: bool) -> None:
        if sure:
            before = self.store.revision()
            self.store.clear()
            assert self.store.revision() > before
            self.model.clear(self.store.revision())

    @rule(ahead=st.sampled_from([None, None, 0, 7]), versions=st.tuples(st.integers(1, 2), st.integers(1, 2)))
    def reopen(self, ahead: int | None, versions: tuple[int, int]) -> None:
        self.look_away()
        self.store.close()
        self.indexes = tuple(replace(i, version=v) for i, v in zip(INDEXES, versions, strict=True))
        self.store = self.reopened(None if ahead is None else self.model.revision + ahead)
        now = self.model.now
        self.model.revision += ahead or 0
        self.model.states[self.model.revision] = now

    @rule(
        resource=st.sampled_from([*RESOURCES, "unknown"]),
        where=st.sampled_from([(), ("r",), ("ro",), ("r", ""), ("r", "n"), ("ro", "nn"), ("x",)]),
        back=st.integers(0, 40),
        limit=st.sampled_from([None, 1, 2, 5]),
    )
    def scan(self, resource: str, where: tuple[str, ...], back: int, limit: int | None) -> None:
        known = [r for r in sorted(self.model.states, reverse=True) if r >= self.model.oldest]
        at = known[min(back, len(known) - 1)]
        expected = self.model.scan(at, resource, *where)
        found: list[Record] = []
        page = self.store.scan(resource, *where, at=at, limit=limit)
        while True:
            found += page.records
            assert page.revision == at
            assert page.remaining == len(expected) - len(found)
            if page.more is None:
                break
            page = self.store.scan(resource, *where, at=at, limit=limit, after=page.more)
        assert found == expected

    @rule(key=KEYS)
    def scan_behind_any_key(self, key: Key) -> None:
        page = self.store.scan(key.resource, after=key)
        assert page.records == [r for r in self.model.scan(self.model.revision, key.resource) if r.key > key]

    @rule(back=st.integers(0, 40), limit=st.integers(1, 10))
    def changes(self, back: int, limit: int) -> None:
        after = self.model.revision - back
        if after < self.model.oldest:
            with pytest.raises(Compacted):
                self.store.changes(after)
        else:
            found: list[Change] = []
            while page := self.store.changes(found[-1].revision if found else after, limit):
                assert len(page) <= limit
                found += page
            assert found == [c for c in self.model.log if c.revision > after]

    @rule(keys=st.lists(KEYS, max_size=4))
    def get(self, keys: list[Key]) -> None:
        expected = [Record(k, *self.model.now[k]) if k in self.model.now else None for k in keys]
        assert self.store.get_many(keys) == expected
        assert [self.store.get(k) for k in keys] == expected

    @rule()
    def look(self) -> None:
        """From now on a view is open, which shows what there is now."""
        self.look_away()
        model = self.model
        self.seen = model.revision, model.oldest, [*model.log], model.now, dict(model.rows)
        self.view = self.viewing.enter_context(self.store.view())

    @rule()
    def look_away(self) -> None:
        self.view = None
        self.viewing.close()

    @invariant()
    def the_view_stands_still(self) -> None:
        if self.view is not None:
            revision, oldest, log, state, rows = self.seen
            assert self.rows_of(self.view) == rows
            assert all(self.view.indexed(index) == indexed(index, state) for index in self.indexes)
            assert LETTERS not in self.indexes or tallies(self.view) == tallied(state)
            assert (self.view.revision(), self.view.oldest()) == (revision, oldest)
            assert self.view.changes(oldest) == log
            expected = [Record(key, *state[key]) for key in sorted(state)]
            assert [record for each in RESOURCES for record in self.view.scan(each).records] == expected
            assert self.view.get_many([record.key for record in expected]) == expected
            assert sum(self.view.count(each) for each in RESOURCES) == len(expected)

    @staticmethod
    def rows_of(view: View) -> dict[RowAt, bytes]:
        found = {table: view.scan_rows(table) for table in TABLES}
        assert all([row.key for row in each] == sorted(row.key for row in each) for each in found.values())
        return {(table, row.key): row.value for table, each in found.items() for row in each}

    @invariant()
    def counters(self) -> None:
        if hasattr(self, "model"):
            assert self.rows_of(self.store) == self.model.rows
            assert all(self.store.indexed(index) == indexed(index, self.model.now) for index in self.indexes)
            assert LETTERS not in self.indexes or tallies(self.store) == tallied(self.model.now)
            assert self.store.get_rows(TABLES[1], NAMES) == [self.model.rows.get((TABLES[1], row)) for row in NAMES]
            assert (self.store.revision(), self.store.oldest()) == (self.model.revision, self.model.oldest)
            assert self.store.changes(self.model.oldest) == self.model.log
            for resource, where in product(RESOURCES, [(), *product(CLUSTERS), *product(CLUSTERS, ["", "n"])]):
                assert self.store.count(resource, *where) == len(self.model.scan(self.model.revision, resource, *where))
            for cluster in CLUSTERS:
                there = {key.resource for key in self.model.now if key.cluster == cluster}
                assert self.store.resources(cluster) == sorted(there)
                assert self.store.keys(cluster) == sorted(key for key in self.model.now if key.cluster == cluster)


def indexed(index: Index, state: State) -> list[IndexEntry]:
    found = []
    for key, (_, value, _) in state.items():
        if index.resources is None or key.resource.partition(":")[0] in index.resources:
            found += [
                IndexEntry(t, key) for t in index.terms(key, value) if index.hint in value and t not in ("", "\0")
            ]
    return sorted(found)


def tallies(view: View) -> dict[str, int]:
    terms = {entry.term for entry in view.indexed(LETTERS)} | {"never"}
    return {term: number for term in sorted(terms) if (number := view.tally(LETTERS, term))}


def tallied(state: State) -> dict[str, int]:
    return dict(sorted(Counter(entry.term for entry in indexed(LETTERS, state)).items()))


def test_the_store_is_as_the_model(implementation: Callable[..., Store]) -> None:
    class MachineOf(Machine):
        opener = staticmethod(implementation)

    run_state_machine_as_test(MachineOf, settings=settings(max_examples=100, stateful_step_count=40, deadline=None))
