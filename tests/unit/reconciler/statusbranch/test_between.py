"""Views of a store between two commits, where another process loads: never half a commit, and never for ever waited."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from apiserver.model.keys import Key
from apiserver.model.tables import Table
from apiserver.storage.lmdb import open_store
from apiserver.storage.protocol import Put, Store
from apiserver.storage.roles import Role, take
from reconciler.statusbranch.between import Beyond, Stepping, forget

Eventually = Callable[..., object]
ONE, OTHER = Key("parts", "c", "", "one"), Key("parts", "c", "", "other")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = open_store(tmp_path / "store", sync=False)
    yield made
    made.close()


class Both:
    """The two processes' halves: each writes under a role of its own."""

    def __init__(self, store: Store) -> None:
        self.loading = Role("loading", take(store, ["loading"])).on(store)
        self.status = Role("status", take(store, ["status"])).on(store)
        self.stepping, self.over = Stepping(self.loading), threading.Event()
        self.beyond = Beyond(self.status, self.over.is_set)

    def seen(self) -> tuple[bytes | None, bytes | None]:
        with self.beyond.view(self.status) as view:
            found = view.get_many([ONE, OTHER])
            return found[0].value if found[0] else None, found[1].value if found[1] else None

    def asked(self) -> bool:
        return self.status.get_row(Table.TENURE, "asked") is not None


@pytest.fixture
def both(store: Store) -> Both:
    return Both(store)


def test_a_view_is_taken_when_a_commit_has_arrived(both: Both, eventually: Eventually) -> None:
    found: list[object] = []
    with both.stepping:
        both.loading.write(Put(ONE, b"1")).result()
        assert both.beyond.is_loading()
        taking = threading.Thread(target=lambda: found.append(both.seen()), daemon=True)
        taking.start()
        eventually(both.asked)
        assert not found
        both.loading.write(Put(OTHER, b"1")).result()
    taking.join(10)
    assert found == [(b"1", b"1")]
    assert not both.beyond.is_loading()
    assert not both.asked()


def test_a_loader_without_a_pause_waits_for_who_asks(both: Both) -> None:
    """And no view is of half a commit."""
    stop, begun, commits = threading.Event(), threading.Event(), 0

    def load() -> None:
        nonlocal commits
        while not stop.is_set():
            commits += 1
            value = b"%d" % commits
            with both.stepping:
                both.loading.write(Put(ONE, value)).result()
                begun.set()
                both.loading.write(Put(OTHER, value)).result()

    loading = threading.Thread(target=load, daemon=True)
    loading.start()
    views = []
    for _ in range(20):
        begun.clear()
        assert begun.wait(10), "it goes on"
        began = time.monotonic()
        views.append(both.seen())
        assert time.monotonic() - began < 5
    stop.set()
    loading.join(10)
    assert all(one == other for one, other in views)
    assert len({one for one, _ in views}) > 10
    assert commits >= 20


def test_who_asked_and_is_gone_is_waited_for_once(both: Both, eventually: Eventually) -> None:
    with both.stepping:
        both.loading.write(Put(ONE, b"1")).result()
        gone = threading.Thread(target=_refused, args=(both,), daemon=True)
        gone.start()
        eventually(both.asked)
        both.over.set()
        gone.join(10)
    assert not both.asked()
    began = time.monotonic()
    for _ in range(5):
        with both.stepping:
            pass
    assert time.monotonic() - began < 1


def test_a_loader_that_was_killed_leaves_what_the_next_one_takes_away(both: Both, store: Store) -> None:
    both.stepping.__enter__()
    both.loading.write(Put(ONE, b"1")).result()
    both.over.set()
    _refused(both)
    forget(both.loading)
    assert both.seen() == (b"1", None)
    assert store.scan_rows(Table.TENURE) == []


def _refused(both: Both) -> None:
    with pytest.raises(RuntimeError, match="in the middle of a commit"):
        both.seen()
