"""A workspace whose content is its tenant's: `git push` to a repository of his own over TLS, and kubectl shows it. The
tenant has no right on the fleet, and the fleet's files are none of his."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.gitserver import GitAsked, GitServer
from support.plane import COMMAND, Clone, Plane, environment

A = "workspaces/root/a"
FLEET = "apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {name: sources}\n"
PASSWORD = "only-the-servers"


def config(said: str, name: str = "said") -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{a: {said}}}\n"


class Tenant:
    """Somebody with a repository of his own, on a server that serves it to who knows the password."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.work = folder / "remotes", folder / "work"
        self.folder.mkdir(parents=True)
        self.server = GitServer(self.folder, folder / "keys", password=PASSWORD)
        self.url = self.server.url("shop.git")
        self.git("init", "--quiet", "--bare", "--initial-branch=main", str(self.folder / "shop.git"), at=folder)
        self.git("clone", "--quiet", str(self.folder / "shop.git"), str(self.work), at=folder)

    def git(self, *words: str, at: Path | None = None) -> str:
        who = ("-c", "user.name=Tess", "-c", "user.email=tess@example.org", "-c", "init.defaultBranch=main")
        done = subprocess.run(
            ["git", *who, *words], cwd=at or self.work, env=environment(), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def push(self, said: str, *words: str, message: str = "Change") -> str:
        (self.work / "deploy").mkdir(exist_ok=True)
        (self.work / "deploy" / "said.yaml").write_text(config(said))
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", message)
        self.git("push", "--quiet", *words, "origin", "HEAD:main")
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def tenant(tmp_path: Path) -> Iterator[Tenant]:
    made = Tenant(tmp_path / "tenant")
    yield made
    made.server.close()


def sourcing(url: str) -> str:
    said = {"repository": url, "branch": "main", "path": "deploy", "secretRef": {"name": "shop"}}
    return f"apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\nspec: {{source: {json.dumps(said)}}}\n"


def said(plane: Plane) -> str:
    return plane.kubectl("get", "configmap", "said", "-o", "jsonpath={.data.a}", workspace="root:a", check=False)


def condition(plane: Plane, kind: str) -> dict[str, Any]:
    found = json.loads(plane.kubectl("get", "workspace", "a", "-o", "json", workspace="root"))
    return next((each for each in found["status"]["conditions"] if each["type"] == kind), {})


def test_a_tenants_push_is_served_and_survives_all_that_happens_to_it(
    plane: Callable[..., Plane], tenant: Tenant, tmp_path: Path, eventually: Any
) -> None:
    folder, data = tmp_path / "fleet", tmp_path / "server" / "data"
    (folder / A).mkdir(parents=True)
    (folder / "treeplane.yaml").write_text(FLEET)
    (folder / "workspaces/root/said.yaml").write_text(config("root"))
    (folder / A / "workspace.yaml").write_text(sourcing(tenant.url))
    secrets = data / "keys" / "secrets" / "root"
    secrets.mkdir(parents=True)
    strings = {"username": "u", "password": PASSWORD, "caFile": tenant.server.ca.decode()}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "shop"}, "stringData": strings}
    (secrets / "shop.json").write_text(json.dumps(secret))
    first = tenant.push("first")
    running = plane(folder, "--trust-sources", "root:a", "--source-interval", "1", data=data)
    clone = running.clone(tmp_path / "clone")

    eventually(lambda: said(running) == "first", 30, "the tenant's repository is served")
    origin = running.kubectl("get", "configmap", "said", "-o", "jsonpath={.metadata}", workspace="root:a")
    annotations, uid = json.loads(origin)["annotations"], json.loads(origin)["uid"]
    assert annotations["treeplane.dev/source-path"] == "deploy/said.yaml"
    assert annotations["treeplane.dev/source-commit"].endswith(f".{first}")
    second = tenant.push("second")
    eventually(lambda: said(running) == "second", 30, "so is what is pushed")
    assert f"{second[:10]} of {tenant.url}" in condition(running, "CommitApplied")["message"]

    (tenant.work / "deploy" / "bad.yaml").write_text("broken: [\n")
    bad = tenant.push("third")
    eventually(lambda: condition(running, "CommitApplied")["status"] == "False", 30, "what is bad is held")
    assert "deploy/bad.yaml:" in condition(running, "CommitApplied")["message"]
    assert bad[:10] in condition(running, "CommitApplied")["message"]
    assert said(running) == "second"
    tenant.git("rm", "--quiet", "deploy/bad.yaml")
    tenant.push("third")
    eventually(lambda: said(running) == "third", 30, "and goes on once it is mended")

    tenant.git("reset", "--quiet", "--hard", first)
    tenant.push("rewritten", "--force")
    eventually(lambda: "was rewritten" in condition(running, "CommitApplied")["message"], 30, "a rewrite is held")
    assert said(running) == "third"
    was = condition(running, "CommitApplied")["message"].partition("Allow-Rewrite: ")[2][:40]
    tenant.push("let", message=f"Take it\n\nAllow-Rewrite: {was}")
    eventually(lambda: said(running) == "let", 30, "until its head says that it may be")

    eventually(lambda: is_recorded(running, clone, was), 60, "all is on the status branch")
    running.stop()
    for cache in ("store", "mirror", "sources"):
        shutil.rmtree(running.data / cache)

    def away(asked: GitAsked) -> bool:
        asked.reply(b"", 500)
        return True

    tenant.server.spoil = away
    running.start()
    assert running.kubectl("get", "configmap", "said", "-o", "jsonpath={.data.a}", workspace="root") == "root"
    eventually(lambda: condition(running, "SourceFollowed").get("reason") == "Failing", 30, "who is away is told")
    assert "cannot be brought back" in condition(running, "CommitApplied")["message"]
    tenant.server.spoil = lambda _: False
    eventually(lambda: said(running) == "let", 60, "it comes back when the repository does")
    found = running.kubectl("get", "configmap", "said", "-o", "jsonpath={.metadata.uid}", workspace="root:a")
    assert found == uid
    log = (running.data.parent / "treeplane.log").read_text()
    assert PASSWORD not in log


def test_a_directory_of_his_is_a_workspace_below(
    plane: Callable[..., Plane], tenant: Tenant, tmp_path: Path, eventually: Any
) -> None:
    folder, data, kid = tmp_path / "fleet", tmp_path / "server" / "data", tenant.work / "deploy" / "team" / "kid"
    (folder / A).mkdir(parents=True)
    (folder / "treeplane.yaml").write_text(FLEET)
    (folder / "workspaces/root/said.yaml").write_text(config("root"))
    (folder / A / "workspace.yaml").write_text(sourcing(tenant.url))
    secrets = data / "keys" / "secrets" / "root"
    secrets.mkdir(parents=True)
    strings = {"username": "u", "password": PASSWORD, "caFile": tenant.server.ca.decode()}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "shop"}, "stringData": strings}
    (secrets / "shop.json").write_text(json.dumps(secret))
    kid.mkdir(parents=True)
    (kid / "workspace.yaml").write_text("")
    (kid / "said.yaml").write_text(config("kid"))
    tenant.push("first")
    running = plane(folder, "--trust-sources", "root:a", "--source-interval", "1", data=data)

    def kids() -> str:
        asked = "get", "configmap", "said", "-o", "jsonpath={.data.a}"
        return running.kubectl(*asked, workspace="root:a:kid", check=False)

    def below() -> list[dict[str, Any]]:
        found: list[dict[str, Any]]
        found = json.loads(running.kubectl("get", "workspaces", "-o", "json", workspace="root:a"))["items"]
        return found

    eventually(lambda: kids() == "kid", 30, "the workspace below is served")
    tree = running.kubectl("ws", ":root") + running.kubectl("ws", "tree")
    assert "    ├── a\n    │   └── kid\n" in tree
    (kid / "said.yaml").write_text(config("more"))
    tenant.push("second")
    eventually(lambda: kids() == "more", 30, "so is what is pushed")

    shutil.rmtree(kid)
    tenant.push("third")
    eventually(lambda: "Allow-Delete" in json.dumps(below()), 30, "that it goes has to be allowed")
    assert (kids(), said(running)) == ("more", "third")
    digest = json.dumps(below()).partition("Allow-Delete: ")[2][:40]
    tenant.push("fourth", message=f"Let it go\n\nAllow-Delete: {digest}")
    eventually(lambda: below() == [], 30, "and then it goes")
    assert "NotFound" in running.kubectl("get", "configmap", "said", workspace="root:a:kid", check=False) or not kids()


def is_recorded(plane: Plane, clone: Clone, was: str) -> bool:
    """Whether the status branch says what is served, and no longer what was."""
    where = str(plane.data / "repo" / "fleet.git")
    command = ["git", "-C", where, "grep", "-h", "content:", "treeplane/status"]
    found = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return "content:" in found and was not in found and clone.git("rev-parse", "HEAD").strip() != ""


def test_what_a_tenant_renders_is_served_and_suspended(
    plane: Callable[..., Plane], tenant: Tenant, tmp_path: Path, eventually: Any, kubectl_program: Path
) -> None:
    """An overlay within the source's path, a push that cannot be rendered, and a pin to what is served meanwhile."""
    folder, data = tmp_path / "fleet", tmp_path / "server" / "data"
    (folder / A).mkdir(parents=True)
    (folder / "treeplane.yaml").write_text(FLEET)
    (folder / "workspaces/root/said.yaml").write_text(config("root"))
    (folder / A / "workspace.yaml").write_text(sourcing(tenant.url))
    secrets = data / "keys" / "secrets" / "root"
    secrets.mkdir(parents=True)
    strings = {"username": "u", "password": PASSWORD, "caFile": tenant.server.ca.decode()}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "shop"}, "stringData": strings}
    (secrets / "shop.json").write_text(json.dumps(secret))
    overlay, base = tenant.work / "deploy" / "web", tenant.work / "deploy" / "base"
    for made in (overlay, base):
        made.mkdir(parents=True)
    (tenant.work / "deploy" / ".treeplaneignore").write_text("/base\n")
    (base / "kustomization.yaml").write_text("resources: [web.yaml]\n")
    (base / "web.yaml").write_text(config("first", "web"))
    (overlay / "kustomization.yaml").write_text("namePrefix: prod-\nresources: [../base]\n")
    first = tenant.push("x")
    options = ("--trust-sources", "root:a", "--source-interval", "1", "--rendering-kubectl", str(kubectl_program))
    running = plane(folder, *options, data=data)
    clone = running.clone(tmp_path / "clone")

    def web() -> str:
        words = ("get", "configmap", "prod-web", "-o", "jsonpath={.data.a}")
        return running.kubectl(*words, workspace="root:a", check=False)

    eventually(lambda: web() == "first", 60, "what comes of the overlay is served")
    (overlay / "kustomization.yaml").write_text("resources: [../../outside]\n")
    bad = tenant.push("y")
    eventually(lambda: condition(running, "CommitApplied")["status"] == "False", 60, "what cannot be is held")
    message = condition(running, "CommitApplied")["message"]
    assert "deploy/web/kustomization.yaml: cannot be rendered" in message
    assert bad[:10] in message
    assert web() == "first"

    eventually(lambda: is_recorded(running, clone, bad), 60, "what is served is recorded")
    clone.git("fetch", "--quiet")
    done = treeplane(clone, "suspend", A, "--reason", "the overlay is broken")
    assert first[:10] in done
    clone.push("origin", "HEAD:main")
    eventually(lambda: condition(running, "CommitApplied")["reason"] == "Pinned", 60, "it is pinned to what is served")
    (overlay / "kustomization.yaml").write_text("namePrefix: prod-\nresources: [../base]\n")
    (base / "web.yaml").write_text(config("second", "web"))
    tenant.push("z")
    treeplane(clone, "resume", A)
    assert web() == "first"
    clone.push("origin", "HEAD:main")
    eventually(lambda: web() == "second", 60, "and follows its branch again")


def treeplane(clone: Clone, *words: str) -> str:
    done = subprocess.run(
        [str(COMMAND), *words], cwd=clone.folder, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
