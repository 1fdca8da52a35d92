"""A fleet that comes back: a drill says so of a server that is gone, and a workspace is put back by a push."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.plane import COMMAND, Clone, Plane, environment

A = "workspaces/root/a"
FLEET = "apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {name: drills}\n"


def config(said: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: said}}\ndata: {{a: {said}}}\n"


def treeplane(where: Path, *words: str) -> str:
    done = subprocess.run(
        [str(COMMAND), *words], cwd=where, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def said(plane: Plane) -> str:
    return plane.kubectl("get", "configmap", "said", "-o", "jsonpath={.data.a}", workspace="root:a", check=False)


def push(clone: Clone, name: str) -> str:
    clone.write(f"{A}/said.yaml", config(name))
    made = clone.commit(f"Say {name}")
    clone.push("origin", "HEAD:main")
    return made


def drilled(plane: Plane) -> Any:
    """Of the repository that the server hosts, with its keys."""
    return json.loads(treeplane(plane.data, "drill", str(plane.data), "--keys", str(plane.data / "keys"), "-o", "json"))


def test_what_is_drilled_is_what_comes_back_and_a_restore_is_a_push(
    plane: Callable[..., Plane], tmp_path: Path, eventually: Any
) -> None:
    folder = tmp_path / "fleet"
    treeplane(tmp_path, "init", str(folder))
    (folder / A).mkdir(parents=True)
    (folder / A / "workspace.yaml").touch()
    (folder / A / "said.yaml").write_text(config("first"))
    running = plane(folder)
    clone = running.clone(tmp_path / "clone")
    first = clone.git("rev-parse", "HEAD").strip()
    second = push(clone, "second")
    eventually(lambda: said(running) == "second", 30, "the second is served")
    uid = running.kubectl("get", "workspace", "a", "-o", "jsonpath={.metadata.uid}", workspace="root")

    running.stop()
    found = drilled(running)
    assert (found["same"], found["differences"], found["signedByServer"]) == (True, [], True)
    point = found["recoveryPoint"]
    assert (point["servedCommit"], point["head"], point["notRecorded"]) == (second, second, 0)
    assert {each["there"] for each in found["notInGit"]["keys"] if each["place"] != "secrets/"} == {True}

    running.start()
    eventually(lambda: said(running) == "second", 30, "it is served again")
    told = treeplane(clone.folder, "restore", "root:a", "--at", first)
    assert "  ConfigMap default/said configured" in told
    assert "workspace root:a configured" in clone.push("origin", "HEAD:main")
    eventually(lambda: said(running) == "first", 30, "it is as it was")
    assert running.kubectl("get", "workspace", "a", "-o", "jsonpath={.metadata.uid}", workspace="root") == uid
    running.stop()
    assert drilled(running)["same"]
