"""The controllers of examples/controllers, as they stand there: each serves all consumers of an export from one process
and one watch."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from realclusters.processes import Process
from support.consumers import CONSUMER, consumer_type
from support.plane import Connection, Plane, environment

EXAMPLES = Path(__file__).parents[2] / "examples/controllers"
CONSUMERS = 1000
FLEET = "apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {name: wildwest}\nspec: {writes: Store}\n"
TYPE = consumer_type("root:wildwest", "cowboys")
WORKSPACES = "/apis/tenancy.kcp.io/v1alpha1/workspaces"
KIND = "wildwest.dev/v1alpha1/cowboys"
COWBOYS = "/apis/wildwest.dev/v1alpha1/namespaces/default/cowboys"
CLIENT = [sys.executable, "-W", "ignore", str(EXAMPLES / "with_client.py"), "root:wildwest", "cowboys"]
KOPF = [sys.executable, "-W", "ignore", "-m", "kopf", "run", "-A", str(EXAMPLES / "with_kopf.py")]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    folder = tmp_path_factory.mktemp("wildwest")
    files = {"treeplane.yaml": FLEET, "workspaces/root/type.yaml": TYPE}
    files |= {"workspaces/root/wildwest/workspace.yaml": ""}
    files |= {"workspaces/root/wildwest/cowboys.yaml": (EXAMPLES / "cowboys.yaml").read_text()}
    files |= {f"workspaces/root/c{number}/workspace.yaml": CONSUMER for number in range(CONSUMERS)}
    for name, text in files.items():
        (folder / "fleet" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "fleet" / name).write_text(text)
    with Plane(folder / "fleet", folder / "server" / "data", "--workers", "2") as plane:
        yield plane


def made(connection: Connection, path: str, obj: Any) -> Any:
    answer = connection.request("POST", path, obj)
    assert answer.status == 201, answer.body
    return answer.body


def workspace(connection: Connection, parent: str, name: str, eventually: Any) -> None:
    body = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": name}}
    made(connection, f"/clusters/{parent}{WORKSPACES}", body)

    def ready() -> bool:
        found = connection.request("GET", f"/clusters/{parent}{WORKSPACES}/{name}").body
        return bool(found["status"]["phase"] == "Ready")

    eventually(ready, 60)


@pytest.fixture(params=["client", "kopf"])
def controller(request: pytest.FixtureRequest, served: Plane, tmp_path: Path) -> Iterator[Process]:
    variables = environment(KUBECONFIG=str(served.kubeconfig), HOME=str(tmp_path), EXPORT="root:wildwest/cowboys")
    process = Process(CLIENT if request.param == "client" else KOPF, tmp_path, variables)
    yield process
    process.end(15, 20)


def taken(connection: Connection, path: str, eventually: Any) -> None:
    if connection.request("GET", f"/clusters/root{WORKSPACES}/{path.rpartition(':')[2]}").status == 200:
        return
    workspace(connection, "root", path.rpartition(":")[2], eventually)
    binding = {
        "apiVersion": "apis.kcp.io/v1alpha2",
        "kind": "APIBinding",
        "metadata": {"name": "cowboys"},
        "spec": {"reference": {"export": {"path": "root:wildwest", "name": "cowboys"}}},
    }
    made(connection, f"/clusters/{path}/apis/apis.kcp.io/v1alpha2/apibindings", binding)
    eventually(lambda: connection.request("GET", f"/clusters/{path}{COWBOYS}").status == 200, 60)


def cowboy(name: str, intent: str) -> Any:
    return {
        "apiVersion": "wildwest.dev/v1alpha1",
        "kind": "Cowboy",
        "metadata": {"name": name},
        "spec": {"intent": intent},
    }


def test_one_process_serves_all_consumers(
    served: Plane, controller: Process, eventually: Any, request: pytest.FixtureRequest
) -> None:
    """A thousand that a commit brought, and one that was made and bound through the API."""
    name = "of-" + request.node.callspec.params["controller"]
    consumers = [*(f"root:c{number}" for number in range(CONSUMERS)), "root:late"]
    connection = served.connection()
    taken(connection, consumers[-1], eventually)
    for path in consumers:
        made(connection, f"/clusters/{path}{COWBOYS}", cowboy(name, path.replace(":", "-")))

    def results() -> list[str]:
        every = f"/services/apiexport/root:wildwest/cowboys/clusters/*/apis/{KIND}?fieldSelector=metadata.name={name}"
        found = connection.request("GET", every).body["items"]
        return sorted((item.get("status") or {}).get("result", "") for item in found)

    wanted = sorted(f"Yeehaw, {path.replace(':', '-')}" for path in consumers)
    eventually(lambda: results() == wanted and not controller.ended(), 200)
    late = {"spec": {"intent": "sleep"}}
    answer = connection.request(
        "PATCH", f"/clusters/{consumers[7]}{COWBOYS}/{name}", late, "application/merge-patch+json"
    )
    assert answer.status == 200

    def now() -> str:
        found = connection.request("GET", f"/clusters/{consumers[7]}{COWBOYS}/{name}").body
        return str((found.get("status") or {}).get("result"))

    eventually(lambda: now() == "Yeehaw, sleep", 60)
    connection.close()
