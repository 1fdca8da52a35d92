"""A workspace whose content is its tenant's: `git push` to a repository of his own over TLS, and kubectl shows it. The
tenant has no right on the fleet, and the fleet's files are none of his."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.gitserver import GitAsked, GitServer
from support.plane import COMMAND, Clone, Plane, environment
from support.sourcedplane import OPTIONS, A, condition, config, said, set_out

from reconciler.repository.sourcerefs import SourceCredentials

PASSWORD = "only-the-servers"


class Tenant:
    """Somebody with a repository of his own, on a server that serves it to who knows the password."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.work = folder / "remotes", folder / "work"
        self.folder.mkdir(parents=True)
        self.server = GitServer(self.folder, folder / "keys", password=PASSWORD)
        self.url = self.server.url("shop.git")
        self.secret = {"username": "u", "password": PASSWORD, "caFile": self.server.ca.decode()}
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


def away(asked: GitAsked) -> bool:
    asked.reply(b"", 500)
    return True


def test_a_tenants_push_is_served_and_survives_all_that_happens_to_it(
    plane: Callable[..., Plane], tenant: Tenant, tmp_path: Path, eventually: Any
) -> None:
    folder, data = set_out(tmp_path, tenant.url, **tenant.secret)
    first = tenant.push("first")
    running = plane(folder, *OPTIONS, data=data)
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


def test_a_server_that_is_killed_while_it_fetches_serves_what_it_served(
    plane: Callable[..., Plane], tenant: Tenant, tmp_path: Path, eventually: Any
) -> None:
    folder, data = set_out(tmp_path, tenant.url, **tenant.secret)
    tenant.push("first")
    running = plane(folder, *OPTIONS, "--workers", "1", data=data)
    eventually(lambda: said(running) == "first", 30, "the tenant's repository is served")

    reached = threading.Event()

    def half(asked: GitAsked) -> bool:
        """Part of the pack, and then nothing."""
        if asked.step == "fetch":
            found = asked.real()
            kind = f"Content-Type: application/x-git-upload-pack-{asked.kind}"
            asked.raw(f"HTTP/1.1 200 OK\r\n{kind}\r\nContent-Length: {len(found)}\r\n\r\n".encode())
            asked.raw(found[: len(found) // 2])
            reached.set()
            asked.ended.wait()
        return asked.step == "fetch"

    tenant.server.spoil = half
    tenant.push("second")
    assert reached.wait(30), "it fetches"
    running.killed()
    running.stop(signal.SIGKILL)
    tenant.server.spoil = away
    running.start()
    assert said(running) == "first", "at once, though the repository does not answer"
    tenant.server.spoil = lambda _: False
    eventually(lambda: said(running) == "second", 60, "and what is new as soon as it does")
    # It looks every second, and a look has such files while it lasts.
    eventually(lambda: unfinished(data / "sources") == [], 30, "nothing is left of what was cut off")


def unfinished(folder: Path) -> list[str]:
    """Files that a fetch has, and takes away or renames in its end."""
    names = [name for _, folders, files in os.walk(folder) for name in (*folders, *files)]
    return [name for name in names if "tmp" in name or name.endswith((".lock", ".new"))]


def test_a_directory_of_his_is_a_workspace_below(
    plane: Callable[..., Plane], tenant: Tenant, tmp_path: Path, eventually: Any
) -> None:
    folder, data = set_out(tmp_path, tenant.url, **tenant.secret)
    kid = tenant.work / "deploy" / "team" / "kid"
    kid.mkdir(parents=True)
    (kid / "workspace.yaml").write_text("")
    (kid / "said.yaml").write_text(config("kid"))
    tenant.push("first")
    running = plane(folder, *OPTIONS, data=data)

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
    eventually(lambda: said(running) == "third", 30, "of the workspace itself all goes on")  # each is written by itself
    assert kids() == "more"
    digest = json.dumps(below()).partition("Allow-Delete: ")[2][:40]
    tenant.push("fourth", message=f"Let it go\n\nAllow-Delete: {digest}")
    eventually(lambda: below() == [], 30, "and then it goes")
    assert "NotFound" in running.kubectl("get", "configmap", "said", workspace="root:a:kid", check=False) or not kids()


def is_recorded(plane: Plane, clone: Clone, was: str) -> bool:
    """Whether the status branch says what is served, and no longer what was."""
    found = recorded(plane)
    return "content:" in found and was not in found and clone.git("rev-parse", "HEAD").strip() != ""


def recorded(plane: Plane) -> str:
    """Which commits of sources the status branch says to be served."""
    where = str(plane.data / "repo" / "fleet.git")
    command = ["git", "-C", where, "grep", "-h", "content:", "treeplane/status"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


class Reader:
    """The tenant, who fetches the branch with his workspace's status as any other, by git, and knows the server's
    key."""

    def __init__(self, tenant: Tenant, folder: Path) -> None:
        self.tenant, self.ca = tenant, folder / "ca.crt"
        self.ca.write_bytes(tenant.server.ca)
        self.branch = "refs/remotes/read/status"

    def summary(self) -> dict[str, Any]:
        """{} where there is no such branch yet."""
        who = SourceCredentials("u", PASSWORD).header()
        settings = ("-c", f"http.sslCAInfo={self.ca}", "-c", f"http.extraHeader=Authorization: {who}")
        if not self.tenant.git(*settings, "ls-remote", self.tenant.url, "refs/heads/treeplane/status"):
            return {}
        self.tenant.git(*settings, "fetch", "--quiet", self.tenant.url, f"+treeplane/status:{self.branch}")
        found: dict[str, Any] = yaml.safe_load(self.tenant.git("show", f"{self.branch}:_summary.yaml"))
        return found

    def commits(self) -> list[str]:
        return self.tenant.git("rev-list", self.branch).split()

    def check(self, key: str) -> None:
        allowed = self.ca.with_name("allowed")
        allowed.write_text(f"treeplane@localhost {key}\n")
        self.tenant.git("-c", f"gpg.ssh.allowedSignersFile={allowed}", "verify-commit", self.branch)


def test_the_tenant_fetches_his_workspaces_status_and_it_goes_on_after_a_loss(
    plane: Callable[..., Plane], tenant: Tenant, tmp_path: Path, eventually: Any
) -> None:
    folder, data = set_out(tmp_path, tenant.url, status=True, **tenant.secret)
    first = tenant.push("first")
    running = plane(folder, *OPTIONS, data=data)
    clone = running.clone(tmp_path / "clone")
    reader = Reader(tenant, tmp_path)

    eventually(lambda: reader.summary().get("served") == first, 60, "the tenant reads what is served")
    assert reader.summary() == {"workspace": "root:a", "served": first}
    assert tenant.git("rev-parse", "origin/main") == first, "and his own branch is his"
    reader.check((data / "keys" / "commits.pub").read_text().strip())
    eventually(lambda: condition(running, "SourceStatusWritten").get("status") == "True", 30, "it is told")

    (tenant.work / "deploy" / "bad.yaml").write_text("broken: [\n")
    tenant.push("second")
    eventually(lambda: "deploy/bad.yaml:" in str(reader.summary().get("errors")), 60, "and what is wrong")
    eventually(lambda: is_recorded(running, clone, "0" * 40), 60, "it is recorded")
    running.stop()
    before = reader.commits()
    for cache in ("store", "mirror", "sources", "excerpts"):
        shutil.rmtree(running.data / cache)
    running.start()
    tenant.git("rm", "--quiet", "deploy/bad.yaml")
    third = tenant.push("third")
    eventually(lambda: reader.summary() == {"workspace": "root:a", "served": third}, 90, "it goes on")
    assert reader.commits()[-len(before) :] == before, "from where it was"
    assert PASSWORD not in (running.data.parent / "treeplane.log").read_text()


def test_what_a_tenant_renders_is_served_and_suspended(
    plane: Callable[..., Plane], tenant: Tenant, tmp_path: Path, eventually: Any, kubectl_program: Path
) -> None:
    """An overlay within the source's path, a push that cannot be rendered, and a pin to what is served meanwhile."""
    folder, data = set_out(tmp_path, tenant.url, **tenant.secret)
    overlay, base = tenant.work / "deploy" / "web", tenant.work / "deploy" / "base"
    for made in (overlay, base):
        made.mkdir(parents=True)
    (tenant.work / "deploy" / ".treeplaneignore").write_text("/base\n")
    (base / "kustomization.yaml").write_text("resources: [web.yaml]\n")
    (base / "web.yaml").write_text(config("first", "web"))
    (overlay / "kustomization.yaml").write_text("namePrefix: prod-\nresources: [../base]\n")
    first = tenant.push("x")
    options = (*OPTIONS, "--rendering-kubectl", str(kubectl_program))
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


def test_what_a_workspace_below_renders_is_served_beside_one_that_fails(
    plane: Callable[..., Plane], tenant: Tenant, tmp_path: Path, eventually: Any, kubectl_program: Path
) -> None:
    """Of a base that stands above both of them in the source's path; and again after a loss."""
    folder, data = set_out(tmp_path, tenant.url, **tenant.secret)
    base, kids = tenant.work / "deploy" / "base", [tenant.work / "deploy" / name for name in ("one", "two")]
    for made in (base, *kids):
        made.mkdir(parents=True)
    (tenant.work / "deploy" / ".treeplaneignore").write_text("/base\n")
    (base / "kustomization.yaml").write_text("resources: [web.yaml]\n")
    (base / "web.yaml").write_text(config("first", "web"))
    for kid in kids:
        (kid / "workspace.yaml").write_text("")
        (kid / "kustomization.yaml").write_text(f"namePrefix: {kid.name}-\nresources: [../base]\n")
    tenant.push("x")
    running = plane(folder, *OPTIONS, "--rendering-kubectl", str(kubectl_program), data=data)

    def web(name: str) -> str:
        words = ("get", "configmap", f"{name}-web", "-o", "jsonpath={.data.a}")
        return running.kubectl(*words, workspace=f"root:a:{name}", check=False)

    eventually(lambda: [web("one"), web("two")] == ["first"] * 2, 60, "what comes of both is served")
    (base / "web.yaml").write_text(config("second", "web"))
    (kids[1] / "kustomization.yaml").write_text("resources: [../one]\n")
    tenant.push("y")
    eventually(lambda: web("one") == "second", 60, "the base is another one")

    def told(name: str) -> str:
        return json.dumps(running.get("/clusters/root:a/apis/tenancy.kcp.io/v1alpha1/workspaces/" + name)["status"])

    eventually(lambda: "cannot be rendered" in told("two"), 30, "the other is held")  # each is written by itself
    assert "it names deploy/one, which is not this workspace's" in told("two")
    assert ("cannot be rendered" in told("one"), web("two")) == (False, "first")
    (kids[1] / "kustomization.yaml").write_text("namePrefix: two-\nresources: [../base]\n")
    last = tenant.push("z")
    eventually(lambda: web("two") == "second", 60, "it is mended")
    eventually(lambda: recorded(running).count(last) == 2, 60, "all is recorded")
    running.stop()
    for name in ("store", "mirror", "sources", "rendering"):
        shutil.rmtree(running.data / name, ignore_errors=True)
    running.start()
    eventually(lambda: [web("one"), web("two")] == ["second"] * 2, 60, "and comes back")


def treeplane(clone: Clone, *words: str) -> str:
    done = subprocess.run(
        [str(COMMAND), *words], cwd=clone.folder, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
