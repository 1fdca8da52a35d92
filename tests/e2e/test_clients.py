"""Real clients, each a program of its own under tests/clients, against the two places where writes are real: an
embedded sync target, and a workspace of type kube-compat. None of them is told that this is not Kubernetes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from realclusters.processes import Process
from support.plane import Plane
from support.shipped import WORKLOAD, binding
from support.worlds import World

CLIENTS = Path(__file__).parents[1] / "clients"
WORLDS = {"target": "/targets/root:edge", "kube-compat": "/clusters/root:compat"}
FLEET = {
    "treeplane.yaml": "apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {name: clients}\n",
    "workspaces/root/apis.yaml": binding(WORKLOAD),
    "workspaces/root/edge.yaml": """
apiVersion: workload.kcp.io/v1alpha1
kind: SyncTarget
metadata: {name: edge}
spec: {connection: {embedded: {}}}
""",
    "workspaces/root/compat/workspace.yaml": """
apiVersion: tenancy.kcp.io/v1alpha1
kind: Workspace
spec: {type: {name: kube-compat, path: root}}
""",
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    folder = tmp_path_factory.mktemp("clients")
    repository = folder / "fleet"
    for name, text in FLEET.items():
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text(text)
    with Plane(repository, folder / "server" / "data", "--workers", "2") as plane:
        yield plane


@pytest.fixture(params=sorted(WORLDS))
def world(request: pytest.FixtureRequest, served: Plane, tmp_path: Path, eventually: Any) -> World:
    found = World(served, WORLDS[request.param], tmp_path)
    eventually(lambda: served.request("GET", f"{found.path}/api/v1/namespaces/default").status == 200, 60)
    return found


@pytest.mark.parametrize("program", ["python_client.py", "lightkube_client.py", "kr8s_client.py"])
def test_python_clients(world: World, program: str) -> None:
    command = [sys.executable, "-W", "ignore", str(CLIENTS / program)]
    result = subprocess.run(command, env=world.environment(), capture_output=True, text=True, timeout=180, check=False)
    assert (result.returncode, result.stdout.splitlines()[-1:]) == (0, ["ok"]), result.stdout + result.stderr


ROBOTS = "/apis/kopf.example/v1/namespaces/default/robots"
ROBOT_CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "robots.kopf.example"},
    "spec": {
        "group": "kopf.example",
        "scope": "Namespaced",
        "names": {"plural": "robots", "singular": "robot", "kind": "Robot"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"task": {"type": "string"}}},
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}


@pytest.fixture
def operator(world: World, tmp_path: Path) -> Iterator[Process]:
    """The kopf operator, running in all namespaces."""
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert world.request("POST", crds, ROBOT_CRD)
    command = [sys.executable, "-W", "ignore", "-m", "kopf", "run", "-A", str(CLIENTS / "kopf_operator.py")]
    process = Process(command, tmp_path, world.environment())
    yield process
    process.end(15, 20)
    world.request("DELETE", f"{crds}/robots.kopf.example")


def test_a_kopf_operator(world: World, operator: Process, eventually: Any) -> None:
    robot = {"apiVersion": "kopf.example/v1", "kind": "Robot", "metadata": {"name": "r"}, "spec": {"task": "dig"}}
    world.request("POST", ROBOTS, robot)

    def now() -> Any:
        return world.request("GET", f"{ROBOTS}/r")

    def taken() -> Any:
        found = now()
        assert not operator.ended(), operator.last_words(30)
        metadata, status = found["metadata"], found.get("status") or {}
        return (
            metadata.get("finalizers") == ["kopf.example/finalizer"]
            and metadata.get("labels") == {"seen": "yes"}
            and status.get("created") == {"task": "dig"}
        )

    eventually(taken, 60, "the operator takes the object")
    before = eventually(lambda: now()["status"].get("beats"), 30, "the timer")
    eventually(lambda: now()["status"]["beats"] >= before + 2, 30, "the timer goes on")
    merge = "application/merge-patch+json"
    world.request("PATCH", f"{ROBOTS}/r", {"spec": {"task": "fly"}}, merge)
    eventually(lambda: now()["status"].get("updated/spec.task") == {"from": "dig", "to": "fly"}, 30, "the change")
    world.request("DELETE", f"{ROBOTS}/r")
    eventually(lambda: now() is None, 30, "the finalizer is taken away")

    def told() -> bool:
        events = world.request("GET", "/api/v1/namespaces/default/events")["items"]
        return "Scrapped" in [event["reason"] for event in events]

    eventually(told, 30, "the event is there, which kopf writes when it comes to it")


@pytest.fixture(scope="session")
def manager(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The controller-runtime manager, built from its modules. Skipped by name where there is no Go or no modules."""
    source, program = CLIENTS / "controller-runtime", tmp_path_factory.mktemp("manager") / "mirror"
    go = shutil.which("go")
    if go is None:
        _without("no go on PATH")
    for arguments in (["mod", "download"], ["build", "-o", str(program), "."]):
        variables = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}
        command = [str(go), *arguments]
        result = subprocess.run(command, cwd=source, env=variables, capture_output=True, text=True, check=False)
        if result.returncode != 0 and arguments[0] == "mod":
            _without(result.stderr.strip().splitlines()[-1])
        assert result.returncode == 0, result.stderr
    return program


def _without(reason: str) -> None:
    text = f"needs Go and its modules for controller-runtime: {reason}"
    if os.environ.get("CI") == "true":
        pytest.fail(text)
    pytest.skip(text)


@pytest.mark.timeout(900)  # the first build compiles client-go
def test_a_controller_runtime_manager(manager: Path, world: World, tmp_path: Path, eventually: Any) -> None:
    process = Process([str(manager)], tmp_path, world.environment())
    maps, secrets = "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/secrets"
    try:
        lease = "/apis/coordination.k8s.io/v1/namespaces/default/leases/mirror.example"
        eventually(lambda: world.request("GET", lease), 30, "the manager leads")
        metadata = {"name": "m", "labels": {"mirror": "yes"}}
        world.request("POST", maps, {"metadata": metadata, "data": {"k": "v"}})
        found = eventually(lambda: world.request("GET", f"{secrets}/m"), 30, "the Secret is made")
        assert found["data"] == {"k": "dg=="}
        [owner] = found["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["controller"]) == ("ConfigMap", "m", True)
        state = eventually(lambda: world.request("GET", f"{maps}/m-state"), 30, "the state is applied")
        assert [m["operation"] for m in state["metadata"]["managedFields"]] == ["Apply"]
        world.request("PATCH", f"{maps}/m", {"data": {"k": "w"}}, "application/merge-patch+json")
        eventually(lambda: world.request("GET", f"{secrets}/m")["data"] == {"k": "dw=="}, 30, "the change")
        world.request("DELETE", f"{secrets}/m")
        eventually(lambda: world.request("GET", f"{secrets}/m"), 30, "an owned object is made again")
        world.request("DELETE", f"{maps}/m")
        eventually(lambda: world.request("GET", f"{maps}/m") is None, 30, "the finalizer is taken away")
        assert world.request("GET", f"{secrets}/m") is None
        assert not process.ended(), process.last_words(20)
    finally:
        code = process.end(15, 30)
    assert code == 0, process.last_words(20)
    assert world.request("GET", lease)["spec"].get("holderIdentity", "") == ""
