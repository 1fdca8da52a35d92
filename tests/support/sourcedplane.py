"""A running server with a workspace, root:a, whose content comes from `deploy/` of a tenant's repository."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.plane import Plane

A = "workspaces/root/a"
OPTIONS = ("--trust-sources", "root:a", "--source-interval", "1")
_FLEET = "apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {name: sources}\n"


def config(said: str, name: str = "said") -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{a: {said}}}\n"


def sourcing(url: str, **more: Any) -> str:
    """root:a's workspace.yaml."""
    said = {"repository": url, "branch": "main", "path": "deploy", "secretRef": {"name": "shop"}, **more}
    return f"apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\nspec: {{source: {json.dumps(said)}}}\n"


def set_out(tmp_path: Path, url: str, *, status: bool = False, **secret: str) -> tuple[Path, Path]:
    """(directory of manifests, data directory), with the Secret that root:a's source refers to."""
    folder, data = tmp_path / "fleet", tmp_path / "server" / "data"
    (folder / A).mkdir(parents=True)
    (folder / "treeplane.yaml").write_text(_FLEET)
    (folder / "workspaces/root/said.yaml").write_text(config("root"))
    (folder / A / "workspace.yaml").write_text(sourcing(url, **({"status": True} if status else {})))
    secrets = data / "keys" / "secrets" / "root"
    secrets.mkdir(parents=True)
    made = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "shop"}, "stringData": secret}
    (secrets / "shop.json").write_text(json.dumps(made))
    return folder, data


def said(plane: Plane) -> str:
    """What root:a's ConfigMap `said` says; "" where there is none."""
    return plane.kubectl("get", "configmap", "said", "-o", "jsonpath={.data.a}", workspace="root:a", check=False)


def condition(plane: Plane, kind: str) -> dict[str, Any]:
    found = json.loads(plane.kubectl("get", "workspace", "a", "-o", "json", workspace="root"))
    return next((each for each in found["status"]["conditions"] if each["type"] == kind), {})
