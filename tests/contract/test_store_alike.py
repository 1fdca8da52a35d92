"""Every store: what is created together because it is alike is what the same puts, one by one, would have made."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.model.keys import Key
from apiserver.model.tables import Table
from apiserver.storage import alike
from apiserver.storage.declared import Declared, Index
from apiserver.storage.protocol import (
    NEVER,
    AlikeObjects,
    CheckNumber,
    CheckRow,
    Conflict,
    Delete,
    DeleteAll,
    Op,
    Put,
    PutAlike,
    RoleLost,
    Store,
    TooMany,
)
from apiserver.storage.templates import Kind, cut, fill, text_bytes

NAMED = Index("named", 1, lambda key, _: [key.name], b'"blue"', frozenset({"things"}), counted=True)
PLAIN = Index("plain", 1, lambda _, value: [value.hex()], b"", frozenset({"papers"}))
DECLARED = Declared((NAMED, PLAIN), frozenset({"rights", "shared"}))
TEXTS = ["red", "green", "blue", "é", "x" * 300]


def template(resource: str) -> bytes:
    found = cut(Key(resource, "c", "", "n"), b'["c","own","%s"]' % resource.encode(), [(Kind.TEXT, "own")])
    assert found is not None
    return found.template


def several(names: list[str], *, shared: str = "top", width: int = 4, at: str = "", note: str = "notes") -> PutAlike:
    """Workspaces of these names that have a thing, a right and a note each, and one object in another one."""
    clusters = [f"c-{at}{name}" for name in names]
    said = [text_bytes(name) for name in names]
    columns = (
        AlikeObjects("things", None, "ns", "thing", template("things"), said),
        AlikeObjects("shared", shared, "", None, template("shared"), said),
        AlikeObjects("rights", None, "", None, template("rights"), said),
        AlikeObjects(note, None, "", "", b"", [name.encode() for name in names]),
    )
    rows = [(f"row:{name}", b"value of " + name.encode()) for name in names]
    return PutAlike(clusters, names, columns[:width], Table.WORKSPACES, rows)


def told(store: Store) -> Any:
    """All that a store says."""
    resources = store.resources()
    clusters = sorted({record.key.cluster for each in resources for record in store.scan(each).records})
    return (
        (store.revision(), store.oldest(), store.marked()),
        store.changes(store.oldest()),
        {each: (store.scan(each).records, store.count(each)) for each in resources},
        {each: (store.marked(each), store.number(each), store.resources(each), store.keys(each)) for each in clusters},
        store.scan_rows(Table.WORKSPACES),
        store.indexed(NAMED),
        store.indexed(PLAIN),
        {each: store.tally(NAMED, each) for each in ("thing", *TEXTS)},
    )


def outcome(answer: Future[list[int]], numbers: list[int] | None = None) -> Any:
    """What a call came to. `numbers`: how many of its ops stand for each."""
    error = answer.exception()
    if isinstance(error, Conflict):
        return error.key, error.expected, error.revision
    if error is not None:
        return type(error)
    return answer.result() if numbers is None else alike.last(answer.result(), numbers)


MOSTLY = st.sampled_from([True] * 5 + [False])
NAMES = st.lists(st.sampled_from(["a", "b", "cc", *TEXTS]), max_size=5)
OTHERS: list[Op] = [
    Put(Key("things", "c-a", "ns", "thing"), b"before"),
    Put(Key("other", "c-b", "", "other"), b"before"),
    Put(Key("shared", "top", "", "cc"), b"before", None, b"stamp"),
    Delete(Key("notes", "c-a", "", "")),
    DeleteAll("c-b", 1 << 62),
    Put(Key("rights", "c-a", "", "a"), b"later"),
    CheckNumber("c-a", 1),
]
CALLS = st.lists(
    st.one_of(
        st.builds(
            several,
            NAMES,
            shared=st.sampled_from(["top", "top", "c-a", "other"]),
            width=st.integers(0, 4),
            at=st.sampled_from(["", "", "2"]),
            note=st.sampled_from(["notes", "notes", "papers"]),
        ).map(lambda op: [op]),
        st.lists(st.sampled_from(OTHERS), min_size=1, max_size=2, unique_by=type),
        st.tuples(st.builds(several, NAMES), st.sampled_from(OTHERS)).map(list),
        st.tuples(st.builds(several, NAMES), st.builds(several, NAMES, at=st.just("2"))).map(list),
    ),
    max_size=6,
)


@settings(max_examples=150, deadline=None)
@given(calls=CALLS, together=st.booleans(), begun=MOSTLY, logged=MOSTLY)
def test_many_are_what_they_stand_for(
    implementation: Callable[..., Store], calls: list[list[Op]], together: bool, begun: bool, logged: bool
) -> None:
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        one, other = (
            implementation(Path(directory) / name, sync=False, declared=DECLARED, start=10**17) for name in ("1", "2")
        )
        stack.callback(one.close)
        stack.callback(other.close)
        for store in (one, other) if begun else ():
            store.write(several(["first"], at="0"), several(["second"], at="0", note="papers")).result()
        writes, each = (one.write, other.write) if logged else (one.fill, other.fill)
        answers = []
        for ops in calls:
            answers.append(writes(*ops))
            if not together:
                answers[-1].exception()
        for ops, answer in zip(calls, answers, strict=True):
            single, numbers = alike.expanded(ops)
            assert outcome(answer) == outcome(each(*single), numbers)
        assert told(one) == told(other)


@pytest.mark.parametrize("note", ["notes", "papers"])
def test_a_large_number_of_them_is_as_many_puts(opened: Callable[..., Store], note: str) -> None:
    op = several([f"n{number:03}" for number in range(300)], note=note)
    one, other = (opened(name, declared=DECLARED, start=10**17) for name in ("one", "other"))
    for store in (one, other):
        store.write(several(["first"], note=note)).result()
    one.write(op).result()
    other.write(*alike.each(op)).result()
    assert told(one) == told(other)
    assert one.get(Key("things", "c-n007", "ns", "thing")) is not None


def test_what_is_filled_is_not_in_the_log(opened: Callable[..., Store]) -> None:
    store = opened(declared=DECLARED)
    store.write(several(["first"])).result()
    [last] = store.fill(several(["a", "b"])).result()
    assert last == store.revision()
    assert store.changes(store.revision()) == []
    assert [record.key.cluster for record in store.scan("things").records] == ["c-a", "c-b", "c-first"]


@pytest.mark.parametrize(
    "there",
    [Key("things", "c-b", "ns", "thing"), Key("shared", "top", "", "b"), Key("notes", "c-b", "", "")],
)
def test_where_one_of_them_stands_none_is_created(opened: Callable[..., Store], there: Key) -> None:
    store = opened(declared=DECLARED)
    [revision] = store.write(Put(there, b"somebody's")).result()
    with pytest.raises(Conflict) as refused:
        store.write(several(["a", "b", "cc"])).result()
    assert (refused.value.key, refused.value.expected, refused.value.revision) == (there, NEVER, revision)
    assert store.scan_rows(Table.WORKSPACES) == []
    assert store.revision() == revision


def test_they_change_like_any_other(opened: Callable[..., Store]) -> None:
    store = opened(declared=DECLARED)
    store.write(several(["a", "b"])).result()
    key = Key("things", "c-a", "ns", "thing")
    found = store.get(key)
    assert found is not None
    assert found.value == fill(template("things"), key, text_bytes("a"))
    store.write(Put(key, b"changed", found.revision)).result()
    store.write(DeleteAll("c-b", store.revision())).result()
    change = store.changes(store.revision() - 4)[0]
    assert (change.key, change.value, change.previous) == (key, b"changed", found.value)
    assert store.keys("c-b") == []
    assert store.number("c-a") == 3


def test_they_are_too_many_for_a_workspace_like_any_other(opened: Callable[..., Store]) -> None:
    store = opened(declared=DECLARED)
    with pytest.raises(TooMany):
        store.write(several(["a", "b"]), CheckNumber("top", 1)).result()
    assert store.scan("shared").records == []


def test_who_has_a_role_no_more_creates_none(opened: Callable[..., Store]) -> None:
    store = opened(declared=DECLARED)
    with pytest.raises(RoleLost):
        store.under(CheckRow(Table.ROLES, "writer", b"me")).write(several(["a"])).result()
    assert store.scan("things").records == []
