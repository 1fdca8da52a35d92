"""Stores of embedded sync targets: those in workspaces that were made through the API go with them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.following import Following

from apiserver.auth.keys import Keys
from apiserver.auth.pki import ensure_keys
from apiserver.model.keys import Key
from apiserver.model.storagenames import SYNC_TARGETS
from apiserver.registry import codec, tree
from apiserver.storage.lmdb import open_store
from apiserver.storage.protocol import Delete, Put, Store
from apiserver.stores import DECLARED
from reconciler.commands.standins import StandIns

MADE = tree.WorkspaceRecord("root:lab", "0123456789abcdef", "root", stored=True)
DECLARED_ONE = tree.WorkspaceRecord("root:git", "fedcba9876543210", "root")
TARGET = codec.encode({"metadata": {"name": "east"}, "spec": {"connection": {"embedded": {}}}})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path / "store", declared=DECLARED, sync=False)
    yield opened
    opened.close()


def standins(store: Store, folder: Path) -> StandIns:
    ensure_keys(folder / "keys")
    return StandIns(store, folder / "targets", Keys(folder / "keys"), sync=False)


def come(store: Store, record: tree.WorkspaceRecord) -> Key:
    key = Key(SYNC_TARGETS, record.cluster, "", "east")
    store.write(tree.put_workspace(record), tree.placed(record), Put(key, TARGET)).result()
    return key


def go(store: Store, record: tree.WorkspaceRecord) -> None:
    store.write(*map(Delete, store.keys(record.cluster)), *tree.forgotten(record)).result()


def places(folder: Path) -> set[str]:
    return {each.name for each in (folder / "targets").iterdir()}


def test_a_store_goes_with_a_workspace_that_no_commit_knows(store: Store, tmp_path: Path) -> None:
    loops = standins(store, tmp_path)
    following = Following.of(store, loops)
    following.settle()
    for record in (MADE, DECLARED_ONE):
        come(store, record)
    following.settle()
    assert places(tmp_path) == {"0123456789abcdef:east", "root:git:east"}
    for record in (MADE, DECLARED_ONE):
        go(store, record)
    following.settle()
    assert places(tmp_path) == {"root:git:east"}
    loops.end()


def test_what_went_while_nobody_looked_goes_at_the_start(store: Store, tmp_path: Path) -> None:
    for place in ("0123456789abcdef:east", "root:git:east", "root:east"):
        (tmp_path / "targets" / place).mkdir(parents=True)
    Following.of(store, standins(store, tmp_path)).settle()
    assert places(tmp_path) == {"root:git:east", "root:east"}
