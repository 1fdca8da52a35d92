"""A store that is older than what was recorded of it: recovered from git and the status branch, but for what neither
knows."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.recoveries import Another, recover, text

from apiserver.model import marks
from apiserver.model.keys import Key
from apiserver.model.tables import Table, row_key
from apiserver.registry import codec
from apiserver.storage.lmdb import open_store
from apiserver.storage.protocol import Delete, Op, PutRow
from apiserver.stores import DECLARED
from reconciler.loading import behind
from reconciler.loading.heads import BranchSettings


class Killed(Exception):
    pass


def runtime(fleet: LoadedFleet, path: str, name: str) -> Key:
    key = fleet.key(path, "configmaps", name)
    metadata = {"name": name, "namespace": "default", "uid": f"u-{path}", "annotations": {marks.ORIGIN: marks.RUNTIME}}
    fleet.put(key, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"made": "here"}})
    return key


def port(fleet: LoadedFleet, path: str) -> str:
    row = row_key(fleet.record(path).cluster, "30080")
    fleet.store.write(PutRow(Table.NODE_PORTS, row, b'["default","web"]')).result()
    return row


def put_back(fleet: LoadedFleet, kept: Path) -> None:
    """The server ends, and store/ is what it was once."""
    fleet.store.close()
    shutil.rmtree(fleet.directory / "store")
    shutil.copytree(kept, fleet.directory / "store")
    fleet.store = open_store(fleet.directory / "store", sync=False, declared=DECLARED)
    fleet.loader = fleet.new_loader(BranchSettings())


def dying(fill: Callable[..., Any], transactions: int) -> Callable[..., Any]:
    left = iter(range(transactions))

    def filled(*ops: Op) -> Any:
        if next(left, None) is None:
            raise Killed
        return fill(*ops)

    return filled


@pytest.fixture
def old(fleet: LoadedFleet, another: Another, tmp_path: Path) -> tuple[LoadedFleet, LoadedFleet, Key, str]:
    """A fleet whose store is older than what is recorded, the same recovered from nothing, and what is to be kept."""
    kept, _ = runtime(fleet, "root:a", "made"), runtime(fleet, "root:b", "made")
    row, _ = port(fleet, "root:a"), port(fleet, "root:b")
    fleet.publish()
    fleet.store.close()
    shutil.copytree(fleet.directory / "store", tmp_path / "kept")
    fleet.store = open_store(fleet.directory / "store", sync=False, declared=DECLARED)
    fleet.loader = fleet.new_loader()
    fleet.commit({f"{A}/app.yaml": configmap(a="later"), f"{A}/more.yaml": configmap("more")})
    fleet.delete({f"{B}/workspace.yaml": None, f"{B}/app.yaml": None})
    fleet.publish()
    whole = recover(fleet, another)
    put_back(fleet, tmp_path / "kept")
    return fleet, whole, kept, row


def load(fleet: LoadedFleet) -> None:
    recorded = fleet.recorded()
    assert recorded is not None
    fleet.load(recorded)


def is_whole(fleet: LoadedFleet, whole: LoadedFleet, kept: Key, row: str) -> None:
    stays = fleet.store.get(kept)
    assert stays is not None
    assert codec.decode(stays.value, 0)["data"] == {"made": "here"}
    found = [key for key in fleet.everything() if key not in whole.everything()]
    assert found == [kept], "and nothing of a workspace that is gone"
    fleet.store.write(Delete(kept)).result()
    assert text(fleet) == text(whole)
    assert [each.key for each in fleet.store.scan_rows(Table.NODE_PORTS)] == [row]


def test_what_only_the_store_knows_stays(old: tuple[LoadedFleet, LoadedFleet, Key, str]) -> None:
    fleet, whole, kept, row = old
    before = fleet.store.revision()
    gone, stayed = behind.forget(fleet.store)
    assert stayed == 2
    assert gone > 4
    assert not fleet.fleet().loaded
    assert fleet.store.oldest() == fleet.store.revision() > before, "nobody is told of a deletion"
    load(fleet)
    is_whole(fleet, whole, kept, row)


def test_it_may_be_cut_off_between_any_two_transactions(
    old: tuple[LoadedFleet, LoadedFleet, Key, str], tmp_path: Path
) -> None:
    fleet, whole, kept, row = old
    for transactions in count():
        put_back(fleet, tmp_path / "kept")
        fill, store = fleet.store.fill, fleet.store
        store.fill = dying(fill, transactions)  # type: ignore[method-assign]
        try:
            behind.forget(store)
            load(fleet)
        except Killed:
            store.fill = fill  # type: ignore[method-assign]
            fleet.loader = fleet.new_loader()
            if not fleet.fleet().fleet:  # else all was forgotten, and the load goes on
                behind.forget(store)
            load(fleet)
            is_whole(fleet, whole, kept, row)
            continue
        break
    assert transactions > 10


def test_an_empty_store_is_swept_of_nothing(fleet: LoadedFleet, another: Another) -> None:
    fleet.publish()
    assert behind.sweep(fleet.store) == 0
    assert not behind.has_objects(another(fleet, "empty").store)
    assert text(recover(fleet, another)) == text(fleet)
