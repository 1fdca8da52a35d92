"""What is written aside is found by indexes like what is there."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.model.keys import Key
from apiserver.model.tables import Table
from apiserver.storage.declared import Declared, Index
from apiserver.storage.memory import MemoryStore
from apiserver.storage.protocol import Check, Conflict, Delete, DeleteAll, DeleteRow, Op, Put, PutRow
from reconciler.loading.overlay import Overlay

NAMES = ["a", "b", "c", "hidden"]


def letters(key: Key, value: bytes) -> Iterable[str]:
    return set(value.decode())


LETTERS = Index("letters", 1, letters, resources=frozenset({"pods"}))
WRITTEN = st.dictionaries(st.sampled_from(NAMES), st.none() | st.text("xyz", max_size=3), max_size=4)


class Hidden:
    def key(self, key: Key) -> bool:
        return key.name == "hidden"

    def row(self, table: Table, row: str) -> bool:
        return False


def key(name: str, resource: str = "pods") -> Key:
    return Key(resource, "root", "default", name)


@given(WRITTEN, WRITTEN, st.sampled_from(["", "x", "y", "xy"]), st.booleans(), st.none() | st.integers(0, 3))
def test_an_index_of_what_is_written_aside(
    below: dict[str, str | None], aside: dict[str, str | None], begin: str, whole: bool, limit: int | None
) -> None:
    store, expected = MemoryStore(declared=Declared((LETTERS,))), MemoryStore(declared=Declared((LETTERS,)))
    over = Overlay(store, Hidden())
    for name, value in below.items():
        if value is not None:
            for each in (store, expected) if name != "hidden" else (store,):
                each.write(Put(key(name), value.encode()), Put(key(name, "others"), value.encode())).result()
    for name, value in aside.items():
        for each in (over, expected):
            each.write(Put(key(name), value.encode()) if value is not None else Delete(key(name))).result()
    found = over.indexed(LETTERS, begin, whole=whole, limit=limit)
    assert found == expected.indexed(LETTERS, begin, whole=whole, limit=limit)
    if found:
        behind = over.indexed(LETTERS, begin, whole=whole, after=found[0])
        assert behind == expected.indexed(LETTERS, begin, whole=whole, after=found[0])


@given(WRITTEN, WRITTEN, st.none() | st.sampled_from(NAMES), st.none() | st.integers(1, 3))
def test_where_nothing_is_hidden_it_is_as_one_store(
    below: dict[str, str | None], aside: dict[str, str | None], after: str | None, limit: int | None
) -> None:
    store, expected = MemoryStore(), MemoryStore()
    over = Overlay(store)
    for name, value in below.items():
        if value is not None:
            for each in (store, expected):
                each.write(Put(key(name), value.encode()), PutRow(Table.HELD, name, value.encode())).result()
    for name, value in aside.items():
        said = (value or "").encode()
        ops: list[Op] = [Put(key(name), said), PutRow(Table.HELD, name, said)]
        ops = ops if value is not None else [Delete(key(name)), DeleteRow(Table.HELD, name)]
        for each in (over, expected):
            each.write(*ops).result()
        with pytest.raises(Conflict):  # nothing of it stays
            over.write(*ops, Put(key("more"), b""), PutRow(Table.HELD, "more", b""), Check(key(name), 999)).result()
    assert over.scan_rows(Table.HELD, after=after, limit=limit) == expected.scan_rows(
        Table.HELD, after=after, limit=limit
    )
    at = key(after) if after is not None else None
    pages = [each.scan("pods", "root", after=at, limit=limit, count=False) for each in (over, expected)]
    said = [[(record.key, record.value) for record in page.records] for page in pages]
    assert said[0] == said[1]
    assert pages[0].more == pages[1].more
    for each in ("pods", "others"):
        assert over.count(each, "root") == expected.count(each, "root")
        assert over.count(each) == expected.count(each)
    assert over.number("root") == expected.number("root")
    assert over.keys("root") == expected.keys("root")


def test_all_of_a_workspace_goes_but_what_is_treeplanes_own() -> None:
    store = MemoryStore()
    own, other = Key("~own", "root", "", ""), Key("pods", "else", "default", "a")
    store.write(*(Put(each, b"{}") for each in (key("a"), key("b", "others"), key("hidden"), own, other))).result()
    over = Overlay(store, Hidden())
    over.write(Put(key("c"), b"{}")).result()
    seen = over.revision()
    over.write(Put(key("a"), b"[]")).result()
    with pytest.raises(Conflict):
        over.write(Put(key("d"), b"{}"), DeleteAll("root", seen)).result()
    assert over.keys("root") == [key("b", "others"), key("a"), key("c"), own]
    over.write(DeleteAll("root", over.revision())).result()
    assert (over.keys("root"), over.get(other) is not None) == ([own], True)
    assert store.get(key("a")) is not None
