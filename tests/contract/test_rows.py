"""What every store promises of the rows of its tables: no revision, no log, no bell, and compare-and-swap."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apiserver.model.keys import Key
from apiserver.model.tables import Table, row_key
from apiserver.storage.limits import LONGEST_ROW
from apiserver.storage.paging import rows
from apiserver.storage.protocol import (
    ABSENT,
    NEVER,
    Check,
    CheckRow,
    Conflict,
    DeleteRow,
    Put,
    PutRow,
    Row,
    RowConflict,
    Store,
)

ROWS, OTHERS = Table.KEPT_SECRETS, Table.CONSUMERS
AT = Key("configmaps", "root", "default", "a")


def test_rows_are_written_beside_objects(store: Store) -> None:
    start = store.revision()
    assert store.write(PutRow(ROWS, "a", b"1"), Put(AT, b"x"), PutRow(OTHERS, "a", b"")).result() == [0, start + 1, 0]
    assert [store.get_row(ROWS, "a"), store.get_row(OTHERS, "a"), store.get_row(ROWS, "b")] == [b"1", b"", None]
    assert store.get_rows(ROWS, ["b", "a"]) == [None, b"1"]
    assert [change.key for change in store.changes(start)] == [AT]
    assert store.write(DeleteRow(ROWS, "a"), DeleteRow(ROWS, "never there")).result() == [0, 0]
    assert store.get_row(ROWS, "a") is None
    assert store.revision() == start + 1
    assert store.resources() == ["configmaps"]


def test_rows_are_compared_with_what_stood_there(store: Store) -> None:
    store.write(PutRow(ROWS, "a", b"1", ABSENT)).result()
    store.write(PutRow(ROWS, "a", b"2", b"1"), CheckRow(ROWS, "a", b"2"), CheckRow(ROWS, "b", ABSENT)).result()
    store.write(PutRow(ROWS, "empty", b"")).result()
    for refused in (
        PutRow(ROWS, "a", b"3", ABSENT),
        PutRow(ROWS, "a", b"3", b"1"),
        PutRow(ROWS, "b", b"3", b""),
        PutRow(ROWS, "empty", b"3", ABSENT),
        CheckRow(ROWS, "a", ABSENT),
        CheckRow(ROWS, "a", b"1"),
        CheckRow(ROWS, "b", b""),
        DeleteRow(ROWS, "a", b"1"),
        DeleteRow(ROWS, "b", b""),
    ):
        with pytest.raises(RowConflict) as raised:
            store.write(Put(AT, b"x"), PutRow(OTHERS, "beside", b"x"), refused).result()
        assert (raised.value.table, raised.value.row) == (ROWS, refused.row)
        assert refused.row in str(raised.value)
    assert store.scan_rows(ROWS) == [Row("a", b"2"), Row("empty", b"")]
    assert (store.get(AT), store.scan_rows(OTHERS)) == (None, [])
    store.write(DeleteRow(ROWS, "a", b"2"), PutRow(ROWS, "a", b"again", ABSENT), DeleteRow(ROWS, "empty", b"")).result()
    assert store.scan_rows(ROWS) == [Row("a", b"again")]


def test_rows_go_with_their_transaction(store: Store) -> None:
    store.write(PutRow(ROWS, "a", b"1")).result()
    with pytest.raises(Conflict):
        store.write(PutRow(ROWS, "a", b"2"), Put(AT, b"x", 7)).result()
    with pytest.raises(RowConflict):
        store.write(Put(AT, b"x", NEVER), CheckRow(ROWS, "a", b"2")).result()
    assert (store.get_row(ROWS, "a"), store.get(AT)) == (b"1", None)
    store.write(PutRow(ROWS, "a", b"2"), Check(AT, NEVER)).result()
    assert store.get_row(ROWS, "a") == b"2"


def test_a_transaction_of_rows_alone_rings_nobody(store: Store) -> None:
    rung = threading.Event()
    store.subscribe(rung.set)
    store.write(PutRow(ROWS, "a", b"1")).result()
    store.write(DeleteRow(ROWS, "a")).result()
    assert not rung.wait(0.3)
    store.write(PutRow(ROWS, "a", b"1"), Put(AT, b"x")).result()
    assert rung.wait(5)


def test_rows_are_scanned_by_prefix(store: Store) -> None:
    paths = ["root", "root:a", "root:a:x", "root:a:y", "root:ab", "root:b"]
    store.write(*(PutRow(ROWS, path, path.encode()) for path in reversed(paths))).result()
    store.write(
        *(PutRow(OTHERS, row_key(*parts), b"") for parts in [("a", "b", "c"), ("a", "b"), ("ab", "b")])
    ).result()
    assert [row.key for row in store.scan_rows(ROWS)] == paths
    assert [row.key for row in store.scan_rows(ROWS, "root:a")] == paths[1:5]
    assert [row.key for row in store.scan_rows(ROWS, "root:a:")] == paths[2:4]
    assert [row.key for row in store.scan_rows(ROWS, "root:a", after="root:a:x", limit=2)] == paths[3:5]
    assert store.scan_rows(ROWS, "root:a", after="root:b") == store.scan_rows(ROWS, limit=0) == []
    assert store.scan_rows(ROWS, "root:a", after="a")[0].key == "root:a"
    assert [row.key.split("\0") for row in rows(store, OTHERS, row_key("a", ""))] == [["a", "b"], ["a", "b", "c"]]


def test_what_cannot_be_a_row_is_refused_and_is_not_there(store: Store) -> None:
    longest = "é" * (LONGEST_ROW // 2)
    store.write(PutRow(ROWS, longest, b"1"), PutRow(ROWS, "", b"2")).result()
    assert [store.get_row(ROWS, longest), store.get_row(ROWS, "")] == [b"1", b"2"]
    for key in (longest + "e", "\ud800"):
        with pytest.raises(ValueError, match="key"):
            store.write(PutRow(ROWS, key, b"")).result()
        assert store.get_row(ROWS, key) is None
        assert store.scan_rows(ROWS, key) == []


KEYS = st.builds(
    lambda head, length, tail: head + "x" * length + tail,
    st.sampled_from(["", "a", "a\0"]),
    st.sampled_from([0, 1, 430, 437, 438, 439, 440, 495, 500, 501, 502, 503, 900]),
    st.sampled_from(["", "a", "b", "\0", "é"]),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(KEYS, st.binary(max_size=3), max_size=20), KEYS, KEYS, st.sampled_from([1, 3, None]))
def test_rows_of_any_length_stand_in_order(
    opened: Callable[..., Store], found: dict[str, bytes], prefix: str, after: str, limit: int | None
) -> None:
    """Longer than what the storage below takes as a key, too."""
    store = opened()
    store.clear()
    store.write(*(PutRow(ROWS, key, value) for key, value in found.items()), PutRow(OTHERS, "x", b"")).result()
    try:
        ordered = [Row(key, found[key]) for key in sorted(found)]
        assert store.scan_rows(ROWS) == list(rows(store, ROWS)) == ordered
        assert store.get_rows(ROWS, list(found)) == list(found.values())
        expected = [row for row in ordered if row.key.startswith(prefix) and row.key > after]
        assert store.scan_rows(ROWS, prefix, after=after, limit=limit) == expected[:limit]
    finally:
        store.close()
