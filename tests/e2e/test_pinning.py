"""A workspace that is pinned: `treeplane pin`, a push, and kubectl shows the commit that it is served as."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.plane import COMMAND, Clone, Plane, environment

A = "workspaces/root/a"
FLEET = "apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {name: pins}\n"


def config(said: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: said}}\ndata: {{a: {said}}}\n"


def treeplane(clone: Clone, *words: str) -> str:
    done = subprocess.run(
        [str(COMMAND), *words], cwd=clone.folder, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def said(plane: Plane) -> str:
    return plane.kubectl("get", "configmap", "said", "-o", "jsonpath={.data.a}", workspace="root:a")


def shown(plane: Plane) -> str:
    """The column of root:a."""
    head, row = plane.kubectl("get", "workspaces", "a", workspace="root").splitlines()
    start = head.index("PINNED")
    return row[start : head.index("HELD")].strip()


def push(clone: Clone, name: str) -> str:
    clone.write(f"{A}/said.yaml", config(name))
    made = clone.commit(f"Say {name}")
    clone.push("origin", "HEAD:main")
    return made


def test_a_workspace_is_served_as_it_was_until_that_is_over(
    plane: Callable[..., Plane], tmp_path: Path, eventually: Any
) -> None:
    folder = tmp_path / "fleet"
    (folder / A).mkdir(parents=True)
    (folder / "treeplane.yaml").write_text(FLEET)
    (folder / "workspaces/root/said.yaml").write_text(config("root"))
    (folder / A / "workspace.yaml").touch()
    (folder / A / "said.yaml").write_text(config("first"))
    running = plane(folder)
    clone = running.clone(tmp_path / "clone")
    first = clone.git("rev-parse", "HEAD").strip()
    push(clone, "second")
    eventually(lambda: said(running) == "second", 30, "the second is served")

    assert "the pin of root:a is created" in treeplane(clone, "pin", A, "HEAD^", "--reason", "the second fails")
    assert "workspace root:a configured" in clone.push("origin", "HEAD:main")
    eventually(lambda: said(running) == "first", 30, "it is served as it was")
    assert shown(running) == first[:10]
    applied = condition(running)
    assert applied["reason"] == "Pinned"
    assert f"pinned to {first[:10]} by {A}/workspace.yaml (the second fails)" in applied["message"]
    push(clone, "third")
    clone.write("workspaces/root/said.yaml", config("pushed"))
    clone.commit("Say it in root")
    clone.push("origin", "HEAD:main")
    eventually(lambda: data_of_root(running) == "pushed", 30, "what was pushed is served elsewhere")
    assert (said(running), shown(running)) == ("first", first[:10])

    eventually(lambda: is_recorded(running, clone), 60, "all is on the status branch")
    running.stop()
    for cache in ("store", "mirror"):
        shutil.rmtree(running.data / cache)
    running.start()
    assert (said(running), shown(running)) == ("first", first[:10])

    assert "the pin of root:a is deleted" in treeplane(clone, "resume", A)
    clone.push("origin", "HEAD:main")
    eventually(lambda: said(running) == "third", 30, "it follows the branch again")
    assert shown(running) == ""

    treeplane(clone, "pin", "root:a", first, "--until", "20s")  # the push has to be judged within it
    assert "workspace root:a configured" in clone.push("origin", "HEAD:main")
    eventually(lambda: said(running) == "third", 90, "it is over at its time")
    assert shown(running) == ""


def condition(plane: Plane) -> dict[str, Any]:
    found = json.loads(plane.kubectl("get", "workspace", "a", "-o", "json", workspace="root"))
    applied: dict[str, Any] = next(c for c in found["status"]["conditions"] if c["type"] == "CommitApplied")
    return applied


def data_of_root(plane: Plane) -> str:
    return plane.kubectl("get", "configmap", "said", "-o", "jsonpath={.data.a}", workspace="root")


def is_recorded(plane: Plane, clone: Clone) -> bool:
    """Whether the status branch names the head."""
    where = str(plane.data / "repo" / "fleet.git")
    command = ["git", "-C", where, "log", "-1", "--format=%(trailers:key=Source-Commit,valueonly)", "treeplane/status"]
    named = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return named == clone.git("rev-parse", "HEAD").strip()
