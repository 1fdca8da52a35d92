"""Trouble of the fleet: a condition of root's LogicalCluster, and what /readyz reads."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import orjson
import pytest

from apiserver.model import clock
from apiserver.model.keys import Key
from apiserver.model.storagenames import LOGICAL_CLUSTERS
from apiserver.registry import tree
from apiserver.registry.tree import WorkspaceRecord, placed, put_workspace
from apiserver.storage.lmdb import open_store
from apiserver.storage.protocol import Put, Store
from reconciler.controllers import fleetcondition
from reconciler.controllers.fleetcondition import Trouble, tell

BORN = "2026-01-01T00:00:00Z"
AT = Key(LOGICAL_CLUSTERS, "rootcluster00000", "", "cluster")


@pytest.fixture
def store(tmp_path: Path) -> Any:
    store = open_store(tmp_path / "store", sync=False)
    yield store
    store.close()


def begin(store: Store) -> None:
    told = {"type": "CommitApplied", "status": "True", "lastTransitionTime": BORN, "reason": "Applied", "message": "x"}
    root = {
        "metadata": {"name": "cluster", "creationTimestamp": BORN},
        "status": {"phase": "Ready", "conditions": [told]},
    }
    store.write(
        put_workspace(WorkspaceRecord("root", AT.cluster, "")),
        placed(WorkspaceRecord("root", AT.cluster, "")),
        Put(AT, orjson.dumps(root)),
    ).result(10)


def condition(store: Store) -> Any:
    record = store.get(AT)
    assert record is not None
    first, found = orjson.loads(record.value)["status"]["conditions"]
    assert first["type"] == "CommitApplied"
    return found


def test_it_follows_what_is_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(store)
    fleetcondition.show(store)
    assert (condition(store)["status"], condition(store)["lastTransitionTime"]) == ("True", BORN)
    monkeypatch.setattr(clock, "now", lambda: "2026-02-01T00:00:00Z")
    tell(store, Trouble.REMOTE_AWAY, "it does not answer: run x")
    found = condition(store)
    assert (found["status"], found["reason"], found["message"]) == ("False", "RemoteAway", "it does not answer: run x")
    assert found["lastTransitionTime"] == "2026-02-01T00:00:00Z"
    monkeypatch.setattr(clock, "now", lambda: "2026-03-01T00:00:00Z")
    tell(store, Trouble.HELD, "commit 1 is held")
    found = condition(store)
    assert (found["reason"], found["message"]) == ("Held", "commit 1 is held; it does not answer: run x")
    assert found["lastTransitionTime"] == "2026-02-01T00:00:00Z"
    tell(store, Trouble.HELD)
    tell(store, Trouble.REMOTE_AWAY)
    found = condition(store)
    assert (found["status"], found["lastTransitionTime"]) == ("True", "2026-03-01T00:00:00Z")
    assert tree.troubles(store) == {}


def test_the_same_again_writes_nothing(store: Store) -> None:
    begin(store)
    tell(store, Trouble.HELD, "commit 1 is held")
    before = store.revision(), tree.troubles(store)
    tell(store, Trouble.HELD, "commit 1 is held")
    tell(store, Trouble.REMOTE_AWAY)
    fleetcondition.show(store)
    assert (store.revision(), tree.troubles(store)) == before


def test_before_root_is_loaded_it_is_kept(store: Store) -> None:
    tell(store, Trouble.STATUS_BRANCH_REFUSED, "no")
    begin(store)
    fleetcondition.show(store)
    assert condition(store)["reason"] == "StatusBranchRefused"


def test_what_another_process_tells_at_the_same_time_stays(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(store)
    read, others = tree.troubles_row, [lambda: tell(store, Trouble.REMOTE_AWAY, "no answer")]

    def late(found: Any) -> bytes | None:
        row = read(found)
        if others:
            monkeypatch.setattr(fleetcondition, "_lock", threading.Lock())  # that one's
            others.pop()()
        return row

    monkeypatch.setattr(tree, "troubles_row", late)
    tell(store, Trouble.STATUS_BRANCH_REFUSED, "not taken")
    assert tree.troubles(store) == {"RemoteAway": "no answer", "StatusBranchRefused": "not taken"}
    assert condition(store)["message"] == "no answer; not taken"
