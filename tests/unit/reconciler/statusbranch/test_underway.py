"""Whether commits are being loaded, as another process sees it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from apiserver.model.tables import Table
from apiserver.storage.lmdb import open_store
from apiserver.storage.protocol import Store
from apiserver.storage.roles import Role, take
from reconciler.statusbranch.underway import UnderWayThere, forget


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = open_store(tmp_path / "store", sync=False)
    yield made
    made.close()


def test_another_process_sees_it(store: Store) -> None:
    here, there = UnderWayThere(Role("loading", take(store, ["loading"])).on(store)), UnderWayThere(store)
    assert not there.is_so()
    with here:
        store.write().result()
        assert there.is_so()
    store.write().result()
    assert not there.is_so()


def test_a_loader_that_was_killed_leaves_what_the_next_one_takes_away(store: Store) -> None:
    here = UnderWayThere(store)
    here.__enter__()
    store.write().result()
    forget(store)
    assert not here.is_so()
    assert store.scan_rows(Table.TENURE) == []


def test_what_could_not_be_taken_away_is_taken_away_later(store: Store) -> None:
    here = UnderWayThere(store)
    here.__enter__()
    store.write().result()
    here.settle()
    store.write().result()
    assert not here.is_so()
