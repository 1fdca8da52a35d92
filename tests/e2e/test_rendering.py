"""What kustomize and helm make of directories, as users have it: pushed, served to kubectl, reviewed, refused to
writes, encrypted Secrets among it, at any commit, and after a restart."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.plane import COMMAND, Clone, Plane, environment
from support.sealing import AgeKey
from support.sealing import environment as with_key

A, B = "workspaces/root/a", "workspaces/root/b"
FLEET = """\
apiVersion: treeplane.dev/v1alpha1
kind: Fleet
metadata: {name: rendered}
spec:
  writes: Commit
  rendering: {shared: [bases]}
"""
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\ndata: {level: VALUE}\n"
OVERLAY = "namePrefix: prod-\nlabels: [{pairs: {team: web}}]\nresources: [../../../../bases/web]\n"
MARKER = f"{A}/app/kustomization.yaml"


def config(name: str, value: str) -> str:
    return CONFIG.replace("NAME", name).replace("VALUE", value)


@pytest.fixture
def folder(tmp_path: Path, kubectl_program: Path) -> Path:
    """root:a renders an overlay of a shared base; root:b has a plain file."""
    top = tmp_path / "fleet"
    files = {
        "treeplane.yaml": FLEET,
        "bases/web/kustomization.yaml": "resources: [config.yaml]\n",
        "bases/web/config.yaml": config("web", "base"),
        "workspaces/root/root.yaml": config("root", "x"),
        f"{A}/workspace.yaml": "",
        f"{A}/own.yaml": config("own", "x"),
        MARKER: OVERLAY,
        f"{B}/workspace.yaml": "",
        f"{B}/own.yaml": config("own", "x"),
    }
    for name, text in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    return top


def level(plane: Plane, name: str, workspace: str = "root:a") -> str:
    template = "{{if .data}}{{.data.level}}{{end}}"
    return plane.kubectl(
        "get", "configmap", name, "--ignore-not-found", "-o", f"go-template={template}", workspace=workspace
    )


def applied(plane: Plane, name: str = "a") -> dict[str, Any]:
    found = json.loads(plane.kubectl("get", "workspace", name, "-o", "json", workspace="root"))
    return next(each for each in found["status"]["conditions"] if each["type"] == "CommitApplied")


def push(clone: Clone, message: str, **files: str) -> str:
    for name, text in files.items():
        clone.write(name, text)
    clone.commit(message)
    clone.push("origin", "HEAD:main")
    return clone.git("rev-parse", "HEAD").strip()


def treeplane(clone: Clone, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(COMMAND), *words], cwd=clone.folder, env=environment(), capture_output=True, text=True, check=False
    )


def test_a_kustomization_of_a_shared_base(
    plane: Callable[..., Plane], folder: Path, tmp_path: Path, eventually: Any
) -> None:
    running = plane(folder)
    eventually(lambda: level(running, "prod-web") == "base", 30, "it is served")
    found = json.loads(running.kubectl("get", "configmap", "prod-web", "-o", "json", workspace="root:a"))["metadata"]
    assert found["labels"] == {"team": "web"}
    assert found["annotations"]["treeplane.dev/source-path"] == MARKER
    assert level(running, "web") == ""

    clone = running.clone(tmp_path / "clone")
    first = clone.git("rev-parse", "HEAD").strip()
    changed = push(clone, "Change the base", **{"bases/web/config.yaml": config("web", "changed")})
    eventually(lambda: level(running, "prod-web") == "changed", 30, "the base reaches who names it")
    path = f"/commits/{first}/clusters/root:a/api/v1/namespaces/default/configmaps/prod-web"
    eventually(lambda: running.request("GET", path).status == 200, 30, "it is read as it was")
    assert running.request("GET", path).body["data"] == {"level": "base"}

    clone.write("bases/web/config.yaml", config("web", "foreseen"))
    told = treeplane(clone, "diff")
    assert told.returncode == 1, told.stderr
    assert "ConfigMap" in told.stdout
    assert "prod-web" in told.stdout
    assert "root:b" not in told.stdout
    clone.git("checkout", "--quiet", "--", ".")

    push(clone, "Break it", **{MARKER: OVERLAY.replace("bases/web", "bases/none"), f"{B}/own.yaml": config("own", "z")})
    eventually(lambda: applied(running)["status"] == "False", 30, "it is held")
    message = applied(running)["message"]
    assert f"{MARKER}: cannot be rendered" in message
    assert "bases/none" in message
    eventually(lambda: level(running, "own", "root:b") == "z", 30, "nobody else waits")
    assert level(running, "prod-web") == "changed"
    checked = treeplane(clone, "validate", ".")
    assert checked.returncode != 0
    assert f"{MARKER}: cannot be rendered" in checked.stdout + checked.stderr
    push(clone, "Mend it", **{MARKER: OVERLAY})
    eventually(lambda: applied(running)["status"] == "True", 30, "it is mended")

    running.stop()
    running.start()
    assert level(running, "prod-web") == "changed"
    drilled = treeplane(clone, "drill")
    assert drilled.returncode == 0, drilled.stdout + drilled.stderr
    logged = treeplane(clone, "log", "root:a")
    assert changed[:7] not in logged.stdout or "prod-web" in logged.stdout


def test_what_is_rendered_is_refused_to_writes(plane: Callable[..., Plane], folder: Path, eventually: Any) -> None:
    running = plane(folder)
    eventually(lambda: level(running, "prod-web") == "base", 30, "it is served")
    patch = ("-p", '{"data":{"level":"mine"}}')
    with pytest.raises(Exception, match=f"it is rendered of {A}/app: change the files that {MARKER} names"):
        running.kubectl("patch", "configmap", "prod-web", *patch, workspace="root:a")
    running.kubectl("patch", "configmap", "own", *patch, workspace="root:a")
    assert level(running, "own") == "mine"
    assert level(running, "prod-web") == "base"


def test_an_encrypted_secret_comes_through_and_is_opened(
    plane: Callable[..., Plane], folder: Path, tmp_path: Path, sops: Path, eventually: Any
) -> None:
    key = AgeKey()
    rule = {"age": key.recipient, "encrypted_regex": "^(data|stringData)$", "mac_only_encrypted": True}
    (folder / ".sops.yaml").write_text(yaml.safe_dump({"creation_rules": [rule]}))
    running = plane(folder)
    key.write(running.data / "keys" / "age" / "root:a")
    clone = running.clone(tmp_path / "clone")
    file = clone.folder / A / "app" / "secret.yaml"
    file.write_text("apiVersion: v1\nkind: Secret\nmetadata: {name: pw}\nstringData: {zeta: one, alpha: two}\n")
    command = [sops, "encrypt", "--in-place", file]
    subprocess.run(command, cwd=clone.folder, env=with_key(key), check=True, capture_output=True)
    push(clone, "Encrypt", **{MARKER: f"{OVERLAY.rstrip()[:-1]}, secret.yaml]\n"})
    template = "{{if .data}}{{.data.zeta | base64decode}} {{.data.alpha | base64decode}}{{end}}"

    def said() -> str:
        words = ("get", "secret", "prod-pw", "--ignore-not-found", "-o", f"go-template={template}")
        return running.kubectl(*words, workspace="root:a")

    eventually(lambda: said() == "one two", 30, "it is served")


def test_a_chart(plane: Callable[..., Plane], folder: Path, tmp_path: Path, helm: Path, eventually: Any) -> None:
    chart = folder / A / "cache"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: cache\nversion: 0.1.0\n")
    (chart / "values.yaml").write_text("level: low\n")
    (chart / "templates" / "config.yaml").write_text(
        config("{{ .Release.Name }}-config", "{{ .Values.level | quote }}")
    )
    running = plane(folder, "--rendering-helm", str(helm))
    eventually(lambda: level(running, "cache-config") == "low", 30, "it is served")
    clone = running.clone(tmp_path / "clone")
    push(clone, "Raise it", **{f"{A}/cache/values.yaml": "level: high\n"})
    eventually(lambda: level(running, "cache-config") == "high", 30, "it is served")
