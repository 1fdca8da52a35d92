"""What every store promises of its indexes: kept up in the object's own transaction, whole before anyone reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from apiserver.model.keys import Key
from apiserver.storage.declared import LONGEST_TERM, Declared, Index, IndexEntry
from apiserver.storage.protocol import Conflict, Delete, Put, Store


def words(key: Key, value: bytes) -> Iterable[str]:
    assert key.resource == "pods"
    return value.removeprefix(b"has ").decode().split(" ")


WORDS = Index("words", 1, words, b"has ", frozenset({"pods"}))
ANY = Index("any", 1, lambda key, _: [key.name], b"every")


def pod(name: str, cluster: str = "root") -> Key:
    return Key("pods", cluster, "default", name)


def found(store: Store, index: Index, *begin: str, **more: object) -> list[tuple[str, str]]:
    return [(entry.term, entry.key.name) for entry in store.indexed(index, *begin, **more)]  # type: ignore[arg-type]


@pytest.fixture
def store(opened: Callable[..., Store]) -> Store:
    return opened(declared=Declared((WORDS, ANY)))


def test_entries_follow_the_object(store: Store) -> None:
    store.write(Put(pod("a"), b"has x y"), Put(pod("b"), b"has y"), Put(pod("c"), b"none of it")).result()
    assert found(store, WORDS) == [("x", "a"), ("y", "a"), ("y", "b")]
    store.write(Put(pod("a"), b"has y z"), Put(pod("c"), b"has z"), Delete(pod("b"))).result()
    assert found(store, WORDS) == [("y", "a"), ("z", "a"), ("z", "c")]
    store.write(Put(pod("a"), b"nothing"), Put(pod("c"), b"has q"), Delete(pod("c")), Put(pod("b"), b"has q")).result()
    assert store.indexed(WORDS) == [IndexEntry("q", pod("b"))]
    store.fill(Put(pod("d"), b"has f")).result()
    assert found(store, WORDS, "f") == [("f", "d")]
    store.clear()
    assert store.indexed(WORDS) == []


def test_nothing_is_indexed_of_what_was_not_written(store: Store) -> None:
    with pytest.raises(Conflict):
        store.write(Put(pod("a"), b"has x"), Put(pod("b"), b"", expect=7)).result()
    assert store.indexed(WORDS) == []


def test_an_index_covers_its_resources_whatever_their_identity(opened: Callable[..., Store]) -> None:
    covering = Index("covering", 1, lambda key, _: [key.resource], resources=frozenset({"pods", "~own"}))
    everywhere = replace(covering, name="everywhere", resources=None)
    store = opened(declared=Declared((covering, everywhere)))
    names = ["pods", "pods:9f86", "podsets", "pods.example.io", "~own"]
    store.write(*(Put(Key(name, "root", "default", "a"), b"") for name in names)).result()
    assert [entry.term for entry in store.indexed(covering)] == ["pods", "pods:9f86", "~own"]
    assert [entry.term for entry in store.indexed(everywhere)] == ["pods", "pods.example.io", "pods:9f86", "podsets"]


def test_entries_are_found_by_term_and_page_by_page(store: Store) -> None:
    for name, cluster in (("b", "one"), ("a", "two"), ("a", "one")):
        store.write(Put(pod(name, cluster), b"has t tt")).result()
    whole = store.indexed(WORDS, "t", whole=True)
    assert whole == [
        IndexEntry("t", pod("a", "one")),
        IndexEntry("t", pod("b", "one")),
        IndexEntry("t", pod("a", "two")),
    ]
    assert [entry.term for entry in store.indexed(WORDS, "t")] == ["t", "t", "t", "tt", "tt", "tt"]
    assert store.indexed(WORDS, "t", whole=True, after=whole[0], limit=1) == whole[1:2]
    assert store.indexed(WORDS, after=whole[2], limit=1) == [IndexEntry("tt", pod("a", "one"))]
    assert store.indexed(WORDS, "u") == store.indexed(WORDS, "", whole=True) == []


def test_a_view_shows_entries_as_they_were(store: Store) -> None:
    store.write(Put(pod("a"), b"has x")).result()
    with store.view() as view:
        store.write(Put(pod("a"), b"has y")).result()
        assert view.indexed(WORDS) == [IndexEntry("x", pod("a"))]
    assert store.indexed(WORDS) == [IndexEntry("y", pod("a"))]


def test_what_a_tenant_writes_never_stops_a_write(store: Store) -> None:
    """What the terms cannot be told of, and what is none, is in no index, and the object is stored."""
    long = b"l" * LONGEST_TERM
    for name, value in (("a", b"has \xff"), ("b", b"has x\0y"), ("c", b"has " + long + b"l"), ("d", b"has " + long)):
        store.write(Put(pod(name), value)).result()
    assert found(store, WORDS) == [(long.decode(), "d")]
    store.write(*(Delete(pod(name)) for name in "abcd")).result()
    assert store.indexed(WORDS) == []


def test_a_new_index_is_whole_before_anyone_reads_it(opened: Callable[..., Store]) -> None:
    store = opened()
    store.write(Put(pod("a"), b"has x y"), Put(pod("b"), b"has y"), Put(Key("other", "c", "", "o"), b"every")).result()
    with pytest.raises(LookupError, match="words"):
        store.indexed(WORDS)
    store.close()
    store = opened(declared=Declared((WORDS, ANY)))
    assert found(store, WORDS) == [("x", "a"), ("y", "a"), ("y", "b")]
    assert found(store, ANY) == [("o", "o")]
    store.close()
    longer = replace(WORDS, version=2, terms=lambda _, value: [value.decode()])
    store = opened(declared=Declared((longer,)))
    assert found(store, longer) == [("has x y", "a"), ("has y", "b")]
    for gone in (WORDS, ANY):
        with pytest.raises(LookupError, match="without the index"):
            store.indexed(gone)
    store.write(Delete(pod("a"))).result()
    assert found(store, longer) == [("has y", "b")]


def test_an_index_that_was_not_kept_for_a_while_is_built_anew(opened: Callable[..., Store]) -> None:
    store = opened(declared=Declared((WORDS,)))
    store.write(Put(pod("a"), b"has x"), Put(pod("b"), b"has x")).result()
    store.close()
    store = opened()
    store.write(Delete(pod("a")), Put(pod("c"), b"has z")).result()
    store.close()
    assert found(opened(declared=Declared((WORDS,))), WORDS) == [("x", "b"), ("z", "c")]


def test_how_many_have_a_term_is_kept(opened: Callable[..., Store]) -> None:
    counted = replace(WORDS, counted=True)
    store = opened()
    store.write(Put(pod("a"), b"has x y"), Put(pod("b"), b"has y")).result()
    store.close()
    store = opened(declared=Declared((counted, ANY)))
    assert [store.tally(counted, term) for term in ("x", "y", "z", "", "x" * 5000)] == [1, 2, 0, 0, 0]
    with store.view() as view:
        store.write(Put(pod("a"), b"has y z"), Delete(pod("b")), Put(pod("c"), b"has y")).result()
        assert (view.tally(counted, "x"), view.tally(counted, "y")) == (1, 2)
    assert [store.tally(counted, term) for term in "xyz"] == [0, 2, 1]
    with pytest.raises(LookupError, match="not counted"):
        store.tally(ANY, "a")
    store.clear()
    assert store.tally(counted, "y") == 0
