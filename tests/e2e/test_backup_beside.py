"""A backup that is brought to life while the server that it was made of runs."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyrage
from support.plane import COMMAND, Clone, Plane, environment

FLEET = "apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {name: beside}\nspec: {writes: Store}\n"
MADE = "/clusters/root:a/api/v1/namespaces/default/configmaps/made"


def treeplane(*words: str) -> str:
    done = subprocess.run(
        [str(COMMAND), *words], env=environment(), capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_what_is_made_of_a_backup_beside_the_old_server_observes(
    plane: Callable[..., Plane], tmp_path: Path, eventually: Any
) -> None:
    """By a URL, where nobody takes over by himself."""
    work = Clone(tmp_path / "work")
    work.write("treeplane.yaml", FLEET)
    work.write("workspaces/root/a/workspace.yaml", "")
    work.git("init", "--quiet", "--initial-branch=main")
    work.commit("begin")
    work.git("clone", "--quiet", "--bare", ".", str(tmp_path / "fleet.git"))
    url, bare = f"file://{tmp_path / 'fleet.git'}", Clone(tmp_path / "fleet.git")
    old = plane(url, "--poll", "1", data=tmp_path / "old" / "data")
    old.kubectl("create", "configmap", "made", "--from-literal=a=b", workspace="root:a")
    eventually(lambda: "treeplane/status" in bare.git("branch", "--list"), 60, "it is recorded")

    secret, file, new = pyrage.x25519.Identity.generate(), tmp_path / "backup.age", tmp_path / "new" / "data"
    (tmp_path / "key").write_text(f"{secret}\n")
    treeplane("backup", "--data-dir", str(old.data), "-o", str(file), "--recipient", str(secret.to_public()))
    given = ("--backup", str(file), "--identity", str(tmp_path / "key"))
    said = treeplane("recover", "--from", url, "--data-dir", str(new), *given)
    [holder] = re.findall(r"^the fleet is held by (\S+), as", said, re.MULTILINE)
    assert f"--take-over {holder}" in said

    beside = plane(url, "--poll", "1", data=new)
    assert f"{holder} holds the fleet: this server only observes" in beside.output()
    assert beside.request("GET", MADE).status == 404, "what the holder does not record is not shown"
    assert (new / "unrecorded").is_dir()
    assert old.request("GET", MADE).status == 200
    assert beside.request("POST", MADE.rpartition("/")[0], {"metadata": {"name": "x"}}).status == 503
    record = bare.git("log", "-1", "--format=%B", "treeplane/status")
    assert f"Writer: {holder}" in record

    old.stop()
    beside.stop()
    after = plane(url, "--poll", "1", "--take-over", holder, data=new)
    assert after.get(MADE)["data"] == {"a": "b"}
    assert "of the backup" in after.output()
    assert not (new / "unrecorded").exists()
