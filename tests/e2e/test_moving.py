"""A workspace that moves: `treeplane mv`, a push, and whoever looks on sees the same workspace in another place."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.plane import COMMAND, Clone, Connection, Plane, Sightings, environment, follow

Object = dict[str, Any]

FLEET = "apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {name: moves}\nspec: {writes: Store}\n"
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: said}\ndata: {a: b}\n"
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: kept}\nstringData: {a: b}\n"
TENANTS, TEAMS = "workspaces/root/tenants", "workspaces/root/teams"


def fleet_in(folder: Path) -> Path:
    for path in (TENANTS, TEAMS, f"{TENANTS}/a", f"{TENANTS}/a/kid"):
        (folder / path).mkdir(parents=True)
        (folder / path / "workspace.yaml").touch()
    (folder / "treeplane.yaml").write_text(FLEET)
    for path in ("workspaces/root", f"{TENANTS}/a", f"{TENANTS}/a/kid"):
        (folder / path / "said.yaml").write_text(CONFIG)
    return folder


def uids(plane: Plane, path: str) -> dict[str, str]:
    return {name: each["metadata"]["uid"] for name, each in plane.objects(path).items() if "events" not in name}


def watching(connection: Connection, cluster: str) -> Sightings:
    """The names of ConfigMaps in a logical cluster, as a watch shows them; it ends with the server."""
    where = f"/clusters/{cluster}/api/v1/namespaces/default/configmaps?watch=true"
    return follow(lambda: connection.stream(where), lambda obj: str(obj["metadata"]["name"]))


def moved(clone: Clone, old: str, new: str) -> bool:
    """Whether the status branch knew enough of it."""
    clone.git("fetch", "--quiet")
    command = [str(COMMAND), "mv", str(clone.folder / old), str(clone.folder / new)]
    return subprocess.run(command, env=environment(), capture_output=True, check=False).returncode == 0


def test_a_workspace_moves_with_all_that_is_in_it(plane: Callable[..., Plane], tmp_path: Path, eventually: Any) -> None:
    running = plane(fleet_in(tmp_path / "fleet"))
    secrets = running.data / "keys" / "secrets" / "root:tenants:a"
    secrets.mkdir(parents=True)
    (secrets / "kept.yaml").write_text(SECRET)
    eventually(lambda: "secrets/default/kept" in running.objects("root:tenants:a"), 30, "the Secret is served")
    running.kubectl("create", "configmap", "mine", workspace="root:tenants:a")
    running.kubectl("create", "configmap", "deep", workspace="root:tenants:a:kid")
    a, kid, uid = (uids(running, "root:tenants:a"), uids(running, "root:tenants:a:kid"), uid_of(running, "tenants"))
    cluster = running.workspaces()["root:tenants:a"]
    clone = running.clone(tmp_path / "clone")
    eventually(lambda: moved(clone, f"{TENANTS}/a", f"{TEAMS}/a"), 60, "it is recorded, and moves")
    assert uid in (clone.folder / TEAMS / "a" / "workspace.yaml").read_text()
    clone.commit("Move a to teams")

    connection = running.connection(None)
    seen = watching(connection, cluster)
    seen.wait("mine", 30)
    assert "workspace root:tenants:a moved to root:teams:a" in clone.push("origin", "HEAD:main")
    eventually(lambda: running.workspaces().get("root:teams:a") == cluster, 60, "it is there")
    running.kubectl("create", "configmap", "later", workspace="root:teams:a")
    seen.wait("later", 30)
    running.kubectl("delete", "configmap", "later", workspace="root:teams:a")
    assert uids(running, "root:teams:a") == a
    assert uids(running, "root:teams:a:kid") == kid
    assert uid_of(running, "teams") == uid
    assert running.request("GET", "/clusters/root:tenants:a/api/v1/configmaps").status == 404
    assert (running.data / "keys" / "secrets" / "root:teams:a" / "kept.yaml").exists()
    shown = running.kubectl("get", "workspaces", "-o", "jsonpath={.items[*].metadata.name}", workspace="root:tenants")
    assert shown == ""

    eventually(lambda: is_recorded(running), 60, "all is on the status branch")
    running.stop()
    connection.close()
    for cache in ("store", "mirror"):
        shutil.rmtree(running.data / cache)
    running.start()
    runtime = {"configmaps/default/mine", "configmaps/default/deep"}
    assert uids(running, "root:teams:a") == {name: each for name, each in a.items() if name not in runtime}
    assert uids(running, "root:teams:a:kid") == {name: each for name, each in kid.items() if name not in runtime}
    assert uid_of(running, "teams") == uid
    assert running.workspaces()["root:teams:a"] == cluster


def uid_of(plane: Plane, parent: str) -> str:
    found: Object = json.loads(plane.kubectl("get", "workspace", "a", "-o", "json", workspace=f"root:{parent}"))
    return str(found["metadata"]["uid"])


def is_recorded(plane: Plane) -> bool:
    """Whether the status branch has the workspace where it is."""
    where = str(plane.data / "repo" / "fleet.git")
    command = ["git", "-C", where, "ls-tree", "-r", "--name-only", "treeplane/status"]
    files = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return f"{TEAMS}/a/kid/_summary.yaml" in files and f"{TENANTS}/a/_summary.yaml" not in files
