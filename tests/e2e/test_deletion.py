"""Deletions against a server that runs, beside what a real kube-apiserver with its controllers answered."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.deletions import STORIES, play
from support.plane import Plane

TESTS = Path(__file__).parents[1]
ANSWERS = json.loads((TESTS / "golden" / "deletion" / "answers.json").read_text())
PLACES = {"target": "/targets/root:infra:locations:us-east", "workspace": "/clusters/root:lab"}
WORKSPACE = {
    "apiVersion": "tenancy.kcp.io/v1alpha1",
    "kind": "Workspace",
    "spec": {"type": {"name": "kube-compat", "path": "root"}},
}

Notes = Callable[[str, str], list[Any]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """The example fleet with a workspace that takes writes as a cluster does."""
    folder = tmp_path_factory.mktemp("deletion")
    fleet = Path(shutil.copytree(TESTS.parent / "examples" / "fleet-repo", folder / "fleet"))
    settings = yaml.safe_load((fleet / "treeplane.yaml").read_text())
    settings.setdefault("spec", {})["writes"] = "Store"
    (fleet / "treeplane.yaml").write_text(yaml.safe_dump(settings))
    lab = fleet / "workspaces" / "root" / "lab"
    lab.mkdir()
    (lab / "workspace.yaml").write_text(yaml.safe_dump(WORKSPACE))
    with Plane(fleet, folder / "server" / "data", "--workers", "1") as plane:
        yield plane


@pytest.fixture(scope="module")
def notes(server: Plane) -> Iterator[Notes]:
    """What was noted of a story (its name) in a place; all are played side by side."""

    def ask(place: str, method: str, path: str, body: Any) -> tuple[int, Any]:
        answer = server.request(method, PLACES[place] + path, body)
        return answer.status, answer.body

    def told(place: str, story: str) -> list[Any]:
        return play(lambda *request: ask(place, *request), story)

    with ThreadPoolExecutor(4) as pool:
        played = {(place, story): pool.submit(told, place, story) for place in PLACES for story in STORIES}
        yield lambda place, story: played[place, story].result()


@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize("place", PLACES)
def test_as_a_real_server_answers(notes: Notes, place: str, story: str) -> None:
    assert notes(place, story) == ANSWERS[story]


def test_kubectl_waits_for_the_end(server: Plane) -> None:
    def kubectl(*arguments: str) -> str:
        return server.kubectl(*arguments, workspace="root:lab")

    kubectl("create", "namespace", "ended")
    for name in ("owner", "owned", "left"):
        kubectl("create", "configmap", name, "-n", "ended")
    uid = kubectl("get", "configmap", "owner", "-n", "ended", "-o", "jsonpath={.metadata.uid}")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid, "blockOwnerDeletion": True}
    patch = json.dumps({"metadata": {"ownerReferences": [reference]}})
    kubectl("patch", "configmap", "owned", "-n", "ended", "-p", patch)
    kubectl("delete", "configmap", "owner", "-n", "ended", "--cascade=foreground", "--timeout=30s")
    found = kubectl("get", "configmaps", "-n", "ended", "-o", "name").split()
    assert "configmap/left" in found
    assert not {"configmap/owner", "configmap/owned"} & set(found)
    assert "deleted" in kubectl("delete", "namespace", "ended", "--timeout=30s")
    assert kubectl("get", "namespace", "ended", "--ignore-not-found") == ""
