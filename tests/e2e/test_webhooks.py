"""Custom resources that a webhook converts, with kubectl, and where such webhooks are called."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.conversionhook import Hook, definition
from support.plane import Plane, PlaneError

WORKSPACE = """\
apiVersion: tenancy.kcp.io/v1alpha1
kind: Workspace
spec: {type: {name: kube-compat, path: root}}
"""
FILES = {
    "treeplane.yaml": "apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {name: hooks}\n",
    "workspaces/root/lab/workspace.yaml": WORKSPACE,
}
LAB = "root:lab"


@pytest.fixture(scope="module")
def hook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hook]:
    made = Hook(tmp_path_factory.mktemp("hook"))
    yield made
    made.close()


def serving(folder: Path, hook: Hook, *arguments: str) -> Plane:
    for name, text in FILES.items():
        path = folder / "fleet" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "crd.json").write_text(json.dumps(definition(hook)))
    widget: dict[str, Any] = {"apiVersion": "z.io/v1", "kind": "W", "metadata": {"name": "a"}, "spec": {"size": 3}}
    (folder / "w.json").write_text(json.dumps(widget))
    return Plane(folder / "fleet", folder / "server" / "data", *arguments)


def create(plane: Plane, folder: Path) -> None:
    plane.kubectl("create", "-f", str(folder / "crd.json"), workspace=LAB)
    plane.kubectl("create", "-f", str(folder / "w.json"), workspace=LAB)


def test_kubectl_reads_and_writes_every_version(tmp_path: Path, hook: Hook) -> None:
    with serving(tmp_path, hook, "--webhook-network", "127.0.0.0/8") as plane:
        create(plane, tmp_path)
        found = json.loads(plane.kubectl("get", "ws.v2.z.io", "a", "-o", "json", workspace=LAB))
        assert (found["apiVersion"], found["spec"]) == ("z.io/v2", {"length": 3})
        patch = '{"spec": {"length": 5}}'
        plane.kubectl("patch", "ws.v2.z.io", "a", "--type=merge", "-p", patch, workspace=LAB)
        assert json.loads(plane.kubectl("get", "ws.v1.z.io", "a", "-o", "json", workspace=LAB))["spec"] == {"size": 5}


def test_loopback_is_not_called_unasked(tmp_path: Path, hook: Hook) -> None:
    asked = len(hook.asked)
    with serving(tmp_path, hook) as plane:
        create(plane, tmp_path)
        with pytest.raises(PlaneError, match=r"address 127\.0\.0\.1 is not allowed"):
            plane.kubectl("get", "ws.v2.z.io", "a", workspace=LAB)
    assert len(hook.asked) == asked
