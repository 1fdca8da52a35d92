"""Many workspaces in one commit: how their writes reach the store."""

from __future__ import annotations

from concurrent.futures import Future

import pytest
from support.loadedfleet import BEGINNING, LoadedFleet, configmap

from apiserver.model.commits import own
from apiserver.model.keys import Key
from apiserver.model.storagenames import WORKSPACES
from apiserver.registry import codec
from apiserver.registry import workspacetypes as types
from apiserver.registry.lifecycles import PHASE
from apiserver.storage.protocol import Op, Put
from reconciler.loading.changeset import ChangeKind


def workspaces(count: int) -> dict[str, str]:
    files = {}
    for number in range(count):
        files[f"workspaces/root/many/w{number}/workspace.yaml"] = ""
        files[f"workspaces/root/many/w{number}/app.yaml"] = configmap(number=str(number))
    return files


def test_writes_are_handed_over_many_at_once(empty: LoadedFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    events, written = list[str](), list[int]()
    write = empty.store.fill

    def noted(*ops: Op) -> Future[list[int]]:
        written.append(sum(isinstance(op, Put) and op.key.resource == "configmaps" for op in ops))
        events.append("write")
        return write(*ops)

    monkeypatch.setattr(empty.store, "fill", noted)
    empty.repo.commit({**BEGINNING, **workspaces(100)})
    empty.loader.load(own(empty.repo.head), progress=lambda _: events.append("judged"))
    runs = "".join("w" if event == "write" else "j" for event in events)
    longest = max(len(run) for run in runs.split("w"))
    assert longest >= 64
    assert sum(written) == 103
    assert max(written) >= 64
    assert len(empty.paths()) == 103


def test_a_workspace_that_appears_is_not_looked_up(fleet: LoadedFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Key] = []
    get_many = fleet.store.get_many
    monkeypatch.setattr(fleet.store, "get_many", lambda keys: asked.extend(keys) or get_many(keys))
    fleet.commit(workspaces(1))
    cluster = fleet.record("root:w0").cluster
    assert [key for key in asked if key.cluster == cluster or key.name == "w0"] == []


def test_what_stands_in_the_place_of_a_workspace_that_appears_is_taken_over(fleet: LoadedFleet) -> None:
    key = Key(WORKSPACES, fleet.record("root").cluster, "", "w0")
    left = fleet.store.get(fleet.key("root", WORKSPACES, "a", ""))
    assert left is not None
    obj = codec.decode(left.value, 0)
    obj["metadata"] = {**obj["metadata"], "name": "w0", "uid": "left", "labels": {"somebody": "was here"}}
    fleet.put(key, obj)
    loaded = fleet.commit(workspaces(1))
    assert (loaded.steps[0].judged, loaded.steps[0].became["root:w0"]) == (2, ChangeKind.CREATED), "it was refused once"
    found = fleet.workspace("root:w0")
    assert found["metadata"]["labels"] == {"somebody": "was here", PHASE: "Ready"}
    assert found["spec"]["cluster"] == fleet.record("root:w0").cluster
    assert found["status"]["phase"] == "Ready"
    assert fleet.data("root:w0") == {"number": "0"}


def test_siblings_that_say_the_same_have_one_type(fleet: LoadedFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    resolved: list[str] = []
    real = types.resolve
    monkeypatch.setattr(types, "resolve", lambda said, path, *rest: resolved.append(path) or real(said, path, *rest))
    fleet.commit(workspaces(10))
    assert len(resolved) == 1
    assert {fleet.record(f"root:w{number}").type for number in range(10)} == {"root:organization"}
