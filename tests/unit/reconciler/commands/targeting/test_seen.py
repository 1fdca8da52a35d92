"""What a server tells of sync targets, and what it does not tell to everybody."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.model import marks
from reconciler.commands.failure import Failure
from reconciler.commands.targeting import seen
from reconciler.commands.targeting.seen import SeenNamespace, SeenPlacement, TargetsSeen
from reconciler.plugin.client import Answer
from reconciler.plugin.errors import PluginError
from reconciler.plugin.session import ShownWorkspace

TARGETS = "/apis/workload.kcp.io/v1alpha1/synctargets"
PLACEMENTS = "/apis/scheduling.kcp.io/v1alpha1/placements"
NAMESPACES = "/api/v1/namespaces"


def marked(name: str, cluster: str, mark: str, value: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "annotations": {marks.CLUSTER: cluster, mark: value}}}


def target_in(cluster: str) -> dict[str, Any]:
    return {"metadata": {"name": "tokyo", "labels": {marks.TARGET_KEY: "k1"}, "annotations": {marks.CLUSTER: cluster}}}


TARGET = target_in("c-infra")
EVERYTHING = {
    f"/clusters/*{TARGETS}": [TARGET],
    f"/clusters/root:infra{TARGETS}": [TARGET],
    f"/clusters/*{PLACEMENTS}": [
        marked("prod", "c-shop", marks.SYNC_TARGET, "k1"),
        marked("left", "c-shop", marks.LEAVING, "k0,k1"),
        marked("other", "c-shop", marks.SYNC_TARGET, "k2"),
    ],
    f"/clusters/*{NAMESPACES}": [
        marked("web", "c-shop", marks.RUNS_ON, "k1"),
        marked("far", "c-hidden", marks.RUNS_ON, "k2,k1"),
        marked("not", "c-shop", marks.RUNS_ON, "k11"),
    ],
}


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What is served to the user, by path; all else he may not read."""
    found: dict[str, Any] = dict(EVERYTHING)

    class Client:
        def get(self, path: str, query: dict[str, str]) -> Answer:
            if path not in found:
                return Answer(403, {})
            items, at = found[path], int(query["continue"] or 0)
            more = {"continue": str(at + 1)} if at + 1 < len(items) else {}
            return Answer(200, {"items": items[at : at + 1], "metadata": more})

    class Played:
        client, here = Client(), "root:infra"

        def __init__(self, _: Any) -> None: ...

        def path(self) -> str:
            return self.here

        def look_up(self, cluster: str) -> ShownWorkspace:
            if cluster == "c-hidden":
                raise PluginError("denied")
            return ShownWorkspace({"c-infra": "root:infra", "c-shop": "root:shop"}[cluster])

    monkeypatch.setattr(seen, "Session", Played)
    monkeypatch.setattr(seen.KubeconfigFiles, "load", lambda _: None)
    return found


def test_what_runs_on_a_target_is_found_in_all_workspaces(served: dict[str, Any]) -> None:
    found = TargetsSeen().find("tokyo")
    assert found.workspace == "root:infra"
    assert found.placements == [SeenPlacement("root:shop", "left", True), SeenPlacement("root:shop", "prod", False)]
    assert found.namespaces == [SeenNamespace("c-hidden", "far"), SeenNamespace("root:shop", "web")]
    assert found.is_empty is False
    [listed] = TargetsSeen().all()
    assert listed.placements == found.placements


def test_who_may_not_look_everywhere_sees_his_workspace_and_knows_that_it_is_not_all(served: dict[str, Any]) -> None:
    for path in [path for path in served if path.startswith("/clusters/*")]:
        del served[path]
    found = TargetsSeen().find("tokyo")
    assert (found.placements, found.namespaces, found.is_empty) == (None, None, None)
    served.clear()
    with pytest.raises(Failure, match="you may not"):
        TargetsSeen().all()
    with pytest.raises(Failure, match="you may not"):
        TargetsSeen(workspace="root:infra").all()


def test_of_two_with_a_name_one_has_to_be_chosen(served: dict[str, Any]) -> None:
    served[f"/clusters/*{TARGETS}"] = [TARGET, target_in("c-shop")]
    with pytest.raises(Failure, match="root:infra, root:shop"):
        TargetsSeen().find("tokyo")
    assert TargetsSeen(workspace="root:infra").find("tokyo").workspace == "root:infra"
    with pytest.raises(Failure, match="there is no sync target kyoto"):
        TargetsSeen().find("kyoto")
