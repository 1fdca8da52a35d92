"""Secrets in git, encrypted with sops: pushed, served to kubectl, written by kubectl, read by sops."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from support.plane import Clone, Credentials, Plane, kubectl_program
from support.sealing import AgeKey, environment

A, B = "workspaces/root/a", "workspaces/root/b"
FLEET = "apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {name: sealed}\nspec: {writes: Commit}\n"
PLAIN = "correct-horse-battery"
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: pw}\nstringData: {password: VALUE}\n"


def encrypt(sops: Path, clone: Clone, key: AgeKey, value: str) -> str:
    """The file as sops writes it, by the rules of the clone."""
    file = clone.folder / A / "secret.yaml"
    file.write_text(SECRET.replace("VALUE", value))
    subprocess.run(
        [sops, "encrypt", "--in-place", file], cwd=clone.folder, env=environment(key), check=True, capture_output=True
    )
    return file.read_text()


def said(plane: Plane, name: str = "pw", workspace: str = "root:a") -> str:
    template = "{{if .data}}{{.data.password | base64decode}}{{end}}"
    return plane.kubectl(
        "get", "secret", name, "--ignore-not-found", "-o", f"go-template={template}", workspace=workspace
    )


def applied(plane: Plane, name: str) -> dict[str, Any]:
    found = json.loads(plane.kubectl("get", "workspace", name, "-o", "json", workspace="root"))
    return next(each for each in found["status"]["conditions"] if each["type"] == "CommitApplied")


def test_secrets_in_git_are_read_by_their_workspace_alone(
    plane: Callable[..., Plane], tmp_path: Path, sops: Path, eventually: Any
) -> None:
    key, folder = AgeKey(), tmp_path / "fleet"
    for place in (A, B):
        (folder / place).mkdir(parents=True)
        (folder / place / "workspace.yaml").touch()
    (folder / "treeplane.yaml").write_text(FLEET)
    (folder / "workspaces/root/app.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\n")
    rule = {"age": key.recipient, "encrypted_regex": "^(data|stringData)$"}
    (folder / ".sops.yaml").write_text(yaml.safe_dump({"creation_rules": [rule]}))
    running = plane(folder)
    clone = running.clone(tmp_path / "clone")

    text = encrypt(sops, clone, key, PLAIN)
    clone.write(f"{B}/copied.yaml", text)
    clone.commit("Encrypt")
    clone.push("origin", "HEAD:main")
    eventually(lambda: applied(running, "a")["reason"] == "SecretsLocked", 30, "the condition says what is missing")
    assert "keys/age/root:a" in applied(running, "a")["message"]
    assert said(running) == ""
    key.write(running.data / "keys" / "age" / "root:a")
    eventually(lambda: said(running) == PLAIN, 30, "it is served")
    assert said(running, workspace="root:b") == ""
    assert "keys/age/root:b has none" in applied(running, "b")["message"]

    clone.write(f"{A}/secret.yaml", text.replace("name: pw", "name: pw\n    labels:\n        by: hand"))
    clone.commit("Tamper")
    clone.push("origin", "HEAD:main")
    eventually(lambda: "sops.mac does not fit" in applied(running, "a")["message"], 30, "it is held")
    assert applied(running, "a")["status"] == "False"
    encrypt(sops, clone, key, "second")
    clone.commit("Encrypt anew")
    clone.push("origin", "HEAD:main")
    eventually(lambda: said(running) == "second", 30, "it is served")

    manifest = SECRET.replace("pw", "made").replace("VALUE", PLAIN)
    (tmp_path / "made.yaml").write_text(manifest)
    assert "keys/secrets" not in warnings(running, "apply", "-f", str(tmp_path / "made.yaml"))
    assert said(running, "made") == PLAIN
    clone.git("pull", "--quiet", "origin", "main")
    made = clone.folder / A / "_objects/default/secrets/made.yaml"
    done = subprocess.run([sops, "decrypt", made], env=environment(key), check=True, capture_output=True)
    assert b"name: made" in done.stdout
    assert not any(holds(file, PLAIN) for file in clone.folder.rglob("*"))
    store = running.data / "store"
    with running.still():  # else files go between being listed and being read
        assert not any(holds(file, PLAIN) for file in running.data.rglob("*") if not file.is_relative_to(store))


def warnings(plane: Plane, *words: str) -> str:
    """What kubectl prints beside the answer."""
    server = f"{Credentials.read(plane.kubeconfig).url}/clusters/root:a"
    command = [kubectl_program(), "--kubeconfig", str(plane.kubeconfig), "--server", server, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def holds(file: Path, text: str) -> bool:
    """Whether a file says what nobody may read, as it is or in base64."""
    if not file.is_file() or not os.access(file, os.R_OK):
        return False
    data = file.read_bytes()
    return text.encode() in data or base64.b64encode(text.encode()) in data
