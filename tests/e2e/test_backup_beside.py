"""A backup that is brought to life: beside the server that it was made of, and with what that could not push."""

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
LATE = "/clusters/root:a/api/v1/namespaces/default/configmaps/late"


def treeplane(*words: str) -> str:
    done = subprocess.run(
        [str(COMMAND), *words], env=environment(), capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def begun(folder: Path) -> tuple[str, Clone]:
    """A fleet behind a URL, and its repository there."""
    work = Clone(folder / "work")
    work.write("treeplane.yaml", FLEET)
    work.write("workspaces/root/a/workspace.yaml", "")
    work.git("init", "--quiet", "--initial-branch=main")
    work.commit("begin")
    work.git("clone", "--quiet", "--bare", ".", str(folder / "fleet.git"))
    work.git("remote", "add", "origin", str(folder / "fleet.git"))
    return f"file://{folder / 'fleet.git'}", Clone(folder / "fleet.git")


def backed_up(server: Plane, folder: Path) -> tuple[str, ...]:
    """The words that give a backup of a server that runs."""
    secret, file = pyrage.x25519.Identity.generate(), folder / "backup.age"
    (folder / "key").write_text(f"{secret}\n")
    treeplane("backup", "--data-dir", str(server.data), "-o", str(file), "--recipient", str(secret.to_public()))
    return ("--backup", str(file), "--identity", str(folder / "key"))


def test_what_is_made_of_a_backup_beside_the_old_server_observes(
    plane: Callable[..., Plane], tmp_path: Path, eventually: Any
) -> None:
    """By a URL, where nobody takes over by himself."""
    url, bare = begun(tmp_path)
    old = plane(url, "--poll", "1", data=tmp_path / "old" / "data")
    old.kubectl("create", "configmap", "made", "--from-literal=a=b", workspace="root:a")
    eventually(lambda: "treeplane/status" in bare.git("branch", "--list"), 60, "it is recorded")

    new, given = tmp_path / "new" / "data", backed_up(old, tmp_path)
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


def test_what_the_repository_did_not_take_comes_back_and_is_pushed_once_it_does(
    plane: Callable[..., Plane], tmp_path: Path, eventually: Any
) -> None:
    url, bare = begun(tmp_path)
    old = plane(url, "--poll", "1", data=tmp_path / "old" / "data")
    eventually(lambda: "treeplane/status" in bare.git("branch", "--list"), 60, "it is recorded")
    hook = tmp_path / "fleet.git" / "hooks" / "update"
    hook.write_text('#!/bin/sh\n[ "$1" != refs/heads/treeplane/status ]\n')
    hook.chmod(0o755)
    before = bare.git("rev-parse", "treeplane/status")
    work = Clone(tmp_path / "work")
    work.write("workspaces/root/a/late.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: late}\n")
    served = work.commit("late")
    work.git("push", "--quiet", "origin", "main")
    mirror = Clone(old.data / "mirror")
    named = ("log", "-1", "--format=%(trailers:key=Source-Commit,valueonly)", "refs/treeplane/recorded")
    head = work.git("rev-parse", "HEAD").strip()
    eventually(lambda: mirror.git(*named).strip() == head, 60, f"{served} is recorded, and waits")
    uid = old.get(LATE)["metadata"]["uid"]
    recorded = mirror.git("rev-parse", "refs/treeplane/recorded").strip()
    given = backed_up(old, tmp_path)
    old.stop()
    assert bare.git("rev-parse", "treeplane/status") == before

    said = treeplane("drill", "--from", url, *given)
    assert re.search(r"of the backup \d+ status commits? up to \w+ that (was|were) not pushed comes? back", said), said
    new = tmp_path / "new" / "data"
    said = treeplane("recover", "--from", url, "--data-dir", str(new), *given)
    [holder] = re.findall(r"^the fleet is held by (\S+), as", said, re.MULTILINE)
    assert "unpushed.bundle: taken in by the server" in said
    beside = plane(url, "--poll", "1", data=new)
    assert f"{holder} holds the fleet: this server only observes" in beside.output()
    assert beside.get(LATE)["metadata"]["uid"] == uid
    assert not (new / "unpushed.bundle").exists()
    assert bare.git("rev-parse", "treeplane/status") == before
    beside.stop()
    hook.unlink()
    after = plane(url, "--poll", "1", "--take-over", holder, data=new)
    assert after.get(LATE)["metadata"]["uid"] == uid
    bare.git("merge-base", "--is-ancestor", recorded, "treeplane/status")
    bare.git("merge-base", "--is-ancestor", before.strip(), "treeplane/status")
    assert f"Take over from {holder}" in bare.git("log", "--format=%B", "treeplane/status")
