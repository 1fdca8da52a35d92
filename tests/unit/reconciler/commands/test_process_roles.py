"""The roles of a process, lent to another and taken back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from apiserver.model.keys import Key
from apiserver.storage.lmdb import open_store
from apiserver.storage.protocol import Put, RoleLost, Store
from reconciler.commands.roles import ALL, REST, Handles, Roles, Work, parse

Eventually = Callable[..., object]
AT = Key("configmaps", "c", "", "a")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = open_store(tmp_path / "store", sync=False)
    yield made
    made.close()


def write(store: Store) -> None:
    store.write(Put(AT, b"1")).result()


def of(handles: Handles, works: tuple[Work, ...]) -> list[Store]:
    return [getattr(handles, work) for work in works]


def test_what_is_lent_is_anothers_until_it_is_taken_back(tmp_path: Path, store: Store) -> None:
    lost: list[Work] = []
    loading, rest = Roles(tmp_path, lost.append), Roles(tmp_path, lost.append, REST)
    assert loading.lock()
    handles = loading.handles(store)
    for each in of(handles, ALL):
        write(each)
    assert not rest.lock(stopped=lambda: True), "they are not free"
    loading.lend(REST)
    assert rest.lock()
    theirs = rest.handles(store)
    write(handles.loading)
    for each in of(theirs, REST):
        write(each)
    for each in (*of(handles, REST), theirs.loading):
        with pytest.raises(RoleLost):
            write(each)
    loading.look(store)
    rest.look(store)
    assert loading.why(Work.LOADING, store) == ""
    assert loading.why(Work.SYNCING, store) == "the role syncing is another process's by now"
    assert lost == [], "what was lent is not lost"
    rest.lend(REST)
    assert loading.lock()
    again = loading.handles(store)
    for each in of(again, ALL):
        write(each)
    for each in of(theirs, REST):
        with pytest.raises(RoleLost):
            write(each)


def test_a_lock_whose_file_was_taken_away_is_lost(tmp_path: Path, store: Store) -> None:
    """The next process would not find it taken."""
    lost: list[Work] = []
    roles = Roles(tmp_path, lost.append)
    assert roles.lock()
    roles.handles(store)
    roles.look(store)
    assert lost == []
    (tmp_path / "roles" / "status.lock").unlink()
    roles.look(store)
    assert lost == [Work.STATUS]
    roles.lend(ALL)
    roles.look(store)
    assert lost == [Work.STATUS], "what it has no more it cannot lose"


def test_who_waits_says_for_whom(tmp_path: Path, eventually: Eventually, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.commands.roles._LONG", 0.05)
    first, second, told = Roles(tmp_path), Roles(tmp_path), list[str]()
    assert first.lock()
    number = first.whose(Work.LOADING).split()[0]
    waiting = threading.Thread(target=second.lock, args=(told.append,), daemon=True)
    waiting.start()
    eventually(lambda: told)
    assert told == [f"process {number} has the role loading still. If it does not end by itself: kill -9 {number}"]
    first.lend(ALL)
    waiting.join(60)
    assert not waiting.is_alive()
    assert len(told) == 1
    second.lend(ALL)


def test_which_roles_a_process_may_have() -> None:
    assert [parse(text) for text in ("all", "syncing,status,controllers", "loading")] == [ALL, REST, (Work.LOADING,)]
    assert parse(",".join(ALL)) == ALL
    for text in ("", "status", "loading,status", "everything", "loading,"):
        with pytest.raises(ValueError, match="is not all, loading or controllers,status,syncing"):
            parse(text)
