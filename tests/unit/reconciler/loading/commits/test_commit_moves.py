"""Writes that are commits, of workspaces that move meanwhile."""

from __future__ import annotations

import threading
from typing import Any

from support.commitfleet import CommitFleet, a_configmap
from support.loadedfleet import A
from support.moving import C, move, moving, uid_of

WORKSPACES = "workspaces.tenancy.kcp.io"


def test_what_is_written_goes_to_where_the_workspace_is(fleet: CommitFleet) -> None:
    fleet.create("root:a", "configmaps", a_configmap())
    uid = uid_of(fleet, "root:a")
    move(fleet)
    assert fleet.held() == {}
    fleet.create("root:c", "configmaps", a_configmap("later"))
    fleet.change("root:c", "configmaps", "app", data={"c": "d"})
    files = fleet.tree()
    assert {f"{C}/_objects/default/configmaps/{name}.yaml" for name in ("made", "later")} <= files.keys()
    assert not [name for name in files if name.startswith(f"{A}/")]
    assert 'c: "d"' in files[f"{C}/app.yaml"] or "c: d" in files[f"{C}/app.yaml"]
    fleet.change("root", WORKSPACES, "c", metadata={**fleet.workspace("root:c")["metadata"], "labels": {"a": "b"}})
    assert f"uid: {uid}" in fleet.tree()[f"{C}/workspace.yaml"]
    assert fleet.held() == {}
    fleet.remove("root", WORKSPACES, "c")
    assert "root:c" not in fleet.paths()


def test_a_write_that_waits_goes_along(idle: CommitFleet, eventually: Any) -> None:
    writer = threading.Thread(target=idle.create, args=("root:a", "configmaps", a_configmap()))
    writer.start()
    eventually(idle.committer.waiting, 10, "it waits")
    idle.repo.commit(moving(idle, A, C, uid_of(idle, "root:a")))
    idle.serve()
    writer.join()
    assert f"{C}/_objects/default/configmaps/made.yaml" in idle.tree()
    assert idle.data("root:c", "made") == {"a": "b"}
    assert idle.held() == {}
