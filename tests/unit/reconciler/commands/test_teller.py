"""What is told of troubles where the store has no room for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apiserver.registry import tree
from apiserver.storage.lmdb import open_store
from apiserver.storage.protocol import NoSpace, Store
from reconciler.commands.report import Report
from reconciler.commands.teller import Teller


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = open_store(tmp_path / "store", sync=False)
    yield made
    made.close()


def full(*_: Any) -> None:
    raise NoSpace("the store is full")


def test_it_is_kept_once_there_is_room_and_nobody_who_tells_fails(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    teller = Teller(Report())
    teller.attach(store)
    teller.status_branch("refused")
    with monkeypatch.context() as patched:
        patched.setattr(store, "write", full)
        teller.recording("no room")
        teller.status_branch("")
        teller.keep_again()
    assert tree.troubles(store) == {"StatusBranchRefused": "refused"}
    teller.keep_again()
    assert tree.troubles(store) == {"NotRecorded": "no room"}
    teller.recording("")
    assert tree.troubles(store) == {}
