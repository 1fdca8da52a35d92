"""What is written aside is found by indexes like what is there."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from apiserver.model.keys import Key
from apiserver.model.tables import Table
from apiserver.storage.declared import Declared, Index
from apiserver.storage.memory import MemoryStore
from apiserver.storage.protocol import Delete, Put
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
