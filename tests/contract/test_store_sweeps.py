"""What every store promises where all that a workspace has goes at once (protocol.DeleteAll)."""

from __future__ import annotations

import pytest

from apiserver.model.keys import Key
from apiserver.model.tables import Table
from apiserver.storage.protocol import NEVER, Check, Conflict, Delete, DeleteAll, Put, PutRow, Store


def test_all_of_a_workspace_goes_at_once(store: Store) -> None:
    mine, own = [Key(r, "c", "", n) for r in ("a", "b") for n in ("x", "y")], Key("~own", "c", "", "")
    others = [Key("a", "b", "", "x"), Key("a", "ca", "", "x")]
    store.write(*(Put(key, key.name.encode()) for key in (*mine, own, *others))).result()
    before = store.revision()
    written = store.write(DeleteAll("c", before), Delete(own), Put(others[0], b"2"), PutRow(Table.FLEET, "x", b""))
    assert written.result() == [before + 4, before + 5, before + 6, 0]
    assert [(c.key, c.value, c.previous) for c in store.changes(before)] == [
        *((key, None, key.name.encode()) for key in mine), (own, None, b""), (others[0], b"2", b"x"),
    ]  # fmt: skip
    assert (store.keys("c"), store.resources("c"), store.number("c")) == ([], [], 0)
    assert [key for key in others if store.get(key) is not None] == others
    assert [record.key for record in store.scan("a", at=before).records] == [others[0], *mine[:2], others[1]]


def test_who_reads_the_log_may_pass_by_what_went_so(store: Store) -> None:
    mine = [Key(resource, "c", "", name) for resource in "ab" for name in "xy"]
    other, again = Key("a", "d", "", "x"), Key("a", "c", "", "x")
    begin = store.revision()
    store.write(*(Put(key, key.name.encode()) for key in (*mine, other))).result()
    store.write(DeleteAll("c", store.revision()), Delete(other), Put(Key("~own", "c", "", ""), b"")).result()
    store.write(Put(again, b"2"), Delete(again)).result()
    every = store.changes(begin)
    gone = [(c.key, c.previous) for c in every if c.deletes]
    assert gone == [*((key, key.name.encode()) for key in mine), (other, b"x"), (again, b"2")]
    swept = every[5:9]
    for asked in (lambda _: False, lambda resource: resource == "b"):
        found = [each for each in every if each not in swept or asked(each.key.resource)]
        assert store.changes(begin, swept=asked) == found
        assert store.changes(begin, 6, swept=asked) == found[:6]
        assert store.changes(swept[2].revision, swept=asked) == [c for c in found if c.revision > swept[2].revision]
    assert [c.value for c in store.changes(begin, swept=lambda _: False)[:5]] == [b"x", b"y", b"x", b"y", b"x"]


def test_not_where_something_of_it_was_written_meanwhile(store: Store) -> None:
    first, second = Key("a", "c", "", "x"), Key("b", "c", "", "y")
    store.write(Put(first, b"1"), Put(second, b"1")).result()
    seen = store.revision()
    store.write(Put(second, b"2")).result()
    with pytest.raises(Conflict) as conflict:
        store.write(Put(Key("a", "d", "", "x"), b""), DeleteAll("c", seen)).result()
    assert (conflict.value.key, conflict.value.expected, conflict.value.revision) == (second, seen, seen + 1)
    assert (store.keys("c"), store.keys("d")) == ([first, second], [])
    store.write(DeleteAll("c", seen + 1)).result()
    assert store.write(DeleteAll("c", seen + 1)).result() == [0]
    assert not store.keys("c")


def test_what_came_with_the_same_transaction_of_the_disk_goes_too(store: Store) -> None:
    """Writes that are committed together see each other."""
    key, seen = Key("new", "c", "", "x"), store.revision()
    written = store.write(Put(key, b"1")), store.write(DeleteAll("c", seen)), store.write(DeleteAll("c", seen + 1))
    written[0].result()
    with pytest.raises(Conflict):
        written[1].result()
    written[2].result()
    assert (store.get(key), store.count("new")) == (None, 0)


def test_all_of_a_workspace_goes_or_something_of_it_is_written(store: Store) -> None:
    key, own = Key("a", "c", "", "x"), Key("~own", "c", "", "")
    for others in ([Put(key, b"")], [Delete(key)], [DeleteAll("c", store.revision())]):
        for ops in ([DeleteAll("c", store.revision()), *others], [*others, DeleteAll("c", store.revision())]):
            with pytest.raises(ValueError, match="removes all of c"):
                store.write(*ops).result()
    store.write(DeleteAll("c", store.revision()), Put(own, b"")).result()
    assert store.keys("c") == [own]


def test_who_asks_behind_it_finds_nothing_of_it(store: Store) -> None:
    key, own = Key("a", "c", "", "x"), Key("~own", "c", "", "")
    [at, own_at] = store.write(Put(key, b"1"), Put(own, b"1")).result()
    gone = DeleteAll("c", store.revision())
    with pytest.raises(Conflict) as conflict:
        store.write(gone, Check(key, at)).result()
    assert (conflict.value.key, conflict.value.revision) == (key, NEVER)
    assert store.get(key) is not None
    store.write(Check(key, at), gone, Check(key, NEVER), Check(own, own_at)).result()
    assert store.keys("c") == [own]
