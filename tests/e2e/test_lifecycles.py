"""A program, with nothing but a kubeconfig, initializes a workspace that is pushed, and acts on it when it is taken
away; the server loses all that it has in between."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from support.plane import Plane

CLUSTERS = "/apis/core.kcp.io/v1alpha1/logicalclusters"
WORKSPACES = "/apis/tenancy.kcp.io/v1alpha1/workspaces"
MERGE = "application/merge-patch+json"
FLEET = """\
apiVersion: treeplane.dev/v1alpha1
kind: Fleet
metadata: {name: shops}
spec: {writes: Store}
"""
TYPE = """\
apiVersion: tenancy.kcp.io/v1alpha1
kind: WorkspaceType
metadata: {name: shop}
spec: {initializer: true, terminator: true}
"""
SHOP = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\nspec: {type: {name: shop}}\n"


def views(server: Plane) -> dict[str, str]:
    """The paths of the type's views, as its status says."""
    found = server.get("/apis/tenancy.kcp.io/v1alpha1/workspacetypes/shop")["status"]["virtualWorkspaces"]
    return {each["type"]: urlsplit(each["url"]).path for each in found}


def waiting(server: Plane, view: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = server.get(f"{views(server)[view]}/clusters/*{CLUSTERS}")["items"]
    return found


def finish(server: Plane, view: str, field: str) -> None:
    for each in waiting(server, view):
        at = f"{views(server)[view]}/clusters/{each['metadata']['annotations']['kcp.io/cluster']}"
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": view}}
        if view == "initializing":
            assert server.request("POST", f"{at}/api/v1/namespaces/default/configmaps", made).status == 201
        assert server.get(f"{at}/api/v1/namespaces/default/configmaps/front")["data"] == {"a": "b"}
        reply = server.request("PATCH", f"{at}{CLUSTERS}/cluster/status", {"status": {field: None}}, MERGE)
        assert reply.status == 200, reply


def phase(server: Plane) -> str:
    return str(server.get(f"{WORKSPACES}/front")["status"]["phase"])


def test_a_workspace_is_initialized_and_terminated_by_a_program(tmp_path: Path, eventually: Any) -> None:
    repository, data = tmp_path / "fleet", tmp_path / "server" / "data"
    files = {"treeplane.yaml": FLEET, "workspaces/root/shop.yaml": TYPE, "workspaces/root/there/workspace.yaml": ""}
    for name, text in files.items():
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text(text)
    with Plane(repository, data) as server:
        clone = server.clone(tmp_path / "clone")
        clone.write("workspaces/root/front/workspace.yaml", SHOP)
        front = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "front"}, "data": {"a": "b"}}
        clone.write("workspaces/root/front/front.json", json.dumps(front))
        clone.commit("Open a shop")
        clone.push()
        eventually(lambda: len(waiting(server, "initializing")) == 1, 60)
        assert phase(server) == "Initializing"
        listed = server.kubectl("get", "ws", "-L", "tenancy.kcp.io/phase", workspace="root")
        assert listed.count("Initializing") == 2, listed
        finish(server, "initializing", "initializers")
        assert (phase(server), waiting(server, "initializing")) == ("Ready", [])
        server.stop()
        for lost in ("store", "mirror"):
            shutil.rmtree(data / lost)
        server.start()
        assert (phase(server), waiting(server, "initializing")) == ("Ready", [])
        clone.git("rm", "-rq", "workspaces/root/front")
        clone.commit("Close it")
        clone.push()
        eventually(lambda: "Allow-Delete" in server.output(), 60)
        [allowed] = set(re.findall(r"Allow-Delete: [0-9a-f]{40}", server.output()))
        clone.git("commit", "-q", "--allow-empty", "-m", "Allow it", "-m", allowed)
        clone.push()
        eventually(lambda: len(waiting(server, "terminating")) == 1, 60)
        assert phase(server) == "Terminating"
        finish(server, "terminating", "terminators")
        eventually(lambda: server.request("GET", f"{WORKSPACES}/front").status == 404, 60)
        assert waiting(server, "terminating") == []
