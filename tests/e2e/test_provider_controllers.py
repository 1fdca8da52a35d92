"""The controllers of examples/controllers, as they stand there: each serves all consumers of an export from one process
and one watch."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from realclusters.processes import Process
from support.plane import Connection, Plane, environment

EXAMPLES = Path(__file__).parents[2] / "examples/controllers"
FLEET = "apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {name: wildwest}\nspec: {writes: Store}\n"
CONSUMERS = 60
WORKSPACES = "/apis/tenancy.kcp.io/v1alpha1/workspaces"
COWBOYS = "/apis/wildwest.dev/v1alpha1/namespaces/default/cowboys"
CLIENT = [sys.executable, "-W", "ignore", str(EXAMPLES / "with_client.py"), "root:wildwest", "cowboys"]
KOPF = [sys.executable, "-W", "ignore", "-m", "kopf", "run", "-A", str(EXAMPLES / "with_kopf.py")]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    folder = tmp_path_factory.mktemp("wildwest")
    (folder / "fleet/workspaces/root").mkdir(parents=True)
    (folder / "fleet/treeplane.yaml").write_text(FLEET)
    (folder / "fleet/workspaces/root/about.yaml").write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n")
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

    eventually(ready, 20)


@pytest.fixture(scope="module")
def consumers(served: Plane) -> list[str]:
    """Paths of workspaces that take the API, of one that does not, and of nobody."""
    return [f"root:c{number}" for number in range(CONSUMERS)]


@pytest.fixture(params=["client", "kopf"])
def controller(request: pytest.FixtureRequest, served: Plane, tmp_path: Path) -> Iterator[Process]:
    variables = environment(KUBECONFIG=str(served.kubeconfig), HOME=str(tmp_path), EXPORT="root:wildwest/cowboys")
    process = Process(CLIENT if request.param == "client" else KOPF, tmp_path, variables)
    yield process
    process.end(15, 20)


def offered(connection: Connection, eventually: Any) -> None:
    if connection.request("GET", f"/clusters/root{WORKSPACES}/wildwest").status == 200:
        return
    workspace(connection, "root", "wildwest", eventually)
    for obj in yaml.safe_load_all((EXAMPLES / "cowboys.yaml").read_text()):
        made(connection, f"/clusters/root:wildwest/apis/{obj['apiVersion']}/{obj['kind'].lower()}s", obj)


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
    eventually(lambda: connection.request("GET", f"/clusters/{path}{COWBOYS}").status == 200, 20)


def cowboy(name: str, intent: str) -> Any:
    return {
        "apiVersion": "wildwest.dev/v1alpha1",
        "kind": "Cowboy",
        "metadata": {"name": name},
        "spec": {"intent": intent},
    }


def test_one_process_serves_all_consumers(
    served: Plane, consumers: list[str], controller: Process, eventually: Any, request: pytest.FixtureRequest
) -> None:
    name = "of-" + request.node.callspec.params["controller"]
    connection = served.connection()
    offered(connection, eventually)
    for path in consumers:
        taken(connection, path, eventually)
        made(connection, f"/clusters/{path}{COWBOYS}", cowboy(name, path.replace(":", "-")))

    def results() -> list[str]:
        listed = connection.request("GET", "/services/apiexport/root:wildwest/cowboys/clusters/*"
                                    "/apis/wildwest.dev/v1alpha1/cowboys").body["items"]  # fmt: skip
        mine = (item for item in listed if item["metadata"]["name"] == name)
        return sorted((item.get("status") or {}).get("result", "") for item in mine)

    wanted = sorted(f"Yeehaw, {path.replace(':', '-')}" for path in consumers)
    eventually(lambda: results() == wanted and not controller.ended(), 60)
    late = {"spec": {"intent": "sleep"}}
    answer = connection.request(
        "PATCH", f"/clusters/{consumers[7]}{COWBOYS}/{name}", late, "application/merge-patch+json"
    )
    assert answer.status == 200

    def now() -> str:
        found = connection.request("GET", f"/clusters/{consumers[7]}{COWBOYS}/{name}").body
        return str((found.get("status") or {}).get("result"))

    eventually(lambda: now() == "Yeehaw, sleep", 20)
    connection.close()
