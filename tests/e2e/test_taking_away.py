"""What a push would take away waits for a word, and what is printed for it can be typed as it is."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.plane import COMMAND, Clone, Plane, environment
from support.widgets import crd, widget

WEB = "workspaces/root/shop/web"


@pytest.fixture
def served(plane: Callable[..., Plane], example_fleet: Path) -> Plane:
    return plane(example_fleet)


def test_a_removed_workspace_waits_for_the_printed_command(served: Plane, tmp_path: Path, eventually: Any) -> None:
    work = served.clone(tmp_path / "fleet")
    work.git("rm", "-q", "-r", WEB)
    head = work.commit("clean up")
    eventually(lambda: "id:" in recorded(work), 20)
    validated = validate(work)
    said = work.push()
    assert f"treeplane: commit {head:.10} is served" in said
    assert "treeplane:   root:shop workspaces.tenancy.kcp.io /web" in said
    # The same before the push, in the answer to it, and in the condition.
    lines = [line.removeprefix("treeplane: ") for line in said.splitlines()]
    commands = [line.strip() for line in lines if line.startswith("  git commit --allow-empty")]
    assert len(commands) == 1
    assert commands[0] in validated
    workspace = served.get("/clusters/root:shop/apis/tenancy.kcp.io/v1alpha1/workspaces/web")
    condition = next(c for c in workspace["status"]["conditions"] if c["type"] == "CommitApplied")
    assert commands[0] in condition["message"]
    # It runs on, and outlives the server.
    before = {key: item["metadata"]["uid"] for key, item in served.objects("root:shop:web").items()}
    served.stop()
    served.start()
    assert {key: item["metadata"]["uid"] for key, item in served.objects("root:shop:web").items()} == before
    shell(work, commands[0])
    assert "1 deleted" in work.push()
    assert "root:shop:web" not in served.workspaces()
    eventually(lambda: "workspaces/root/shop/web" not in status_files(work), 20)


def test_a_lost_server_finds_what_waits_to_go(
    served: Plane, plane: Callable[..., Plane], tmp_path: Path, eventually: Any
) -> None:
    work = served.clone(tmp_path / "fleet")
    uids = {key: item["metadata"]["uid"] for key, item in served.objects("root:shop:web").items()}
    work.git("rm", "-q", "-r", WEB)
    work.commit("clean up")
    work.push()
    eventually(lambda: "kept:" in recorded(work), 20)
    served.stop()
    mirror = tmp_path / "clone.git"
    shell(
        work, f"git clone -q --mirror {shlex.quote(str(served.data / 'repo' / 'fleet.git'))} {shlex.quote(str(mirror))}"
    )
    new = plane(mirror)
    assert {key: item["metadata"]["uid"] for key, item in new.objects("root:shop:web").items()} == uids


def test_a_branch_behind_a_url_that_goes_back(
    plane: Callable[..., Plane], example_fleet: Path, tmp_path: Path, eventually: Any
) -> None:
    work, origin = Clone(example_fleet), tmp_path / "fleet.git"
    work.git("init", "--quiet", "--initial-branch=main")
    first = work.commit("begin")
    work.write(f"{WEB}/more.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n")
    served_commit = work.commit("more")
    work.git("clone", "--quiet", "--bare", ".", str(origin))
    server = plane(f"file://{origin}", "--poll", "1")
    path = "/clusters/root:shop:web/api/v1/namespaces/default/configmaps/more"
    uid = server.get(path)["metadata"]["uid"]
    work.git("push", "--quiet", "--force", str(origin), f"{first}:refs/heads/main")
    eventually(lambda: f"went back to {first}" in server.output(), 20)
    assert server.get(path)["metadata"]["uid"] == uid
    # Where it is told comes in no order.
    root = "/clusters/root/apis/core.kcp.io/v1alpha1/logicalclusters/cluster"
    eventually(lambda: f"went back to {first}" in json.dumps(server.get(root)["status"]["conditions"]), 20)
    eventually(lambda: "[-]fleet Held" in str(server.request("GET", "/readyz?verbose").body), 20)

    # Another history: allowed by a commit, with the printed command.
    work.git("reset", "--quiet", "--hard", first)
    work.write(f"{WEB}/other.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n")
    work.commit("another history")
    work.git("push", "--quiet", "--force", str(origin), "HEAD:refs/heads/main")
    said = eventually(lambda: "was rewritten" in server.output() and server.output(), 20)
    command = said.partition("to follow it, push: ")[2].partition("; or start with")[0]
    assert served_commit in command
    shell(work, command)
    work.git("push", "--quiet", str(origin), "HEAD:refs/heads/main")
    eventually(lambda: server.request("GET", path).status == 404, 20)
    kept = subprocess.run(
        ["git", "-C", str(server.data / "mirror"), "for-each-ref", "refs/treeplane/keep"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert served_commit[:10] in kept

    # In an emergency: the printed command line takes the head.
    work.git("push", "--quiet", "--force", str(origin), f"{first}:refs/heads/main")
    eventually(lambda: server.output().count(f"went back to {first}") == 2, 20)
    assert f"--take-head {first}" in server.output().replace("\n", " ")
    server.stop()
    server.arguments = (*server.arguments, "--take-head", first)
    server.start()
    other = "/clusters/root:shop:web/api/v1/namespaces/default/configmaps/other"
    eventually(lambda: server.request("GET", other).status == 404, 20)
    eventually(lambda: "[+]fleet ok" in str(server.request("GET", "/readyz?verbose").body), 20)


def validate(work: Clone) -> str:
    command = [str(COMMAND), "validate", str(work.folder), "--rev", "HEAD"]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, check=False).stdout


def shell(work: Clone, command: str) -> None:
    names = {f"GIT_{who}_{what}": "test" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    subprocess.run(
        ["bash", "-c", command], cwd=work.folder, env=environment(**names), check=True, capture_output=True, stdin=None
    )


def recorded(work: Clone) -> str:
    work.git("fetch", "--quiet")
    return work.git("show", "origin/treeplane/status:fleet.yaml", check=False)


def status_files(work: Clone) -> str:
    work.git("fetch", "--quiet")
    return work.git("ls-tree", "-r", "--name-only", "origin/treeplane/status")


def test_a_workspace_waits_for_what_is_in_it(
    served: Plane, plane: Callable[..., Plane], tmp_path: Path, eventually: Any
) -> None:
    """Also on another server, after the loss of this one."""
    work = served.clone(tmp_path / "fleet")
    held = "metadata: {name: held, finalizers: [example.io/hold]}"
    work.write(f"{WEB}/held.yaml", f"apiVersion: v1\nkind: ConfigMap\n{held}\n")
    work.commit("held")
    work.push()
    item = "/clusters/root:shop:web/api/v1/namespaces/default/configmaps/held"
    uid = served.get(item)["metadata"]["uid"]
    work.git("rm", "-q", "-r", WEB)
    work.commit("no more web")
    said = [line.removeprefix("treeplane: ").strip() for line in work.push().splitlines()]
    shell(work, next(line for line in said if line.startswith("git commit --allow-empty")))
    work.push()
    above = "/clusters/root:shop/apis/tenancy.kcp.io/v1alpha1/workspaces/web"
    workspace = served.get(above)
    assert workspace["status"]["phase"] == "Deleting"
    told = next(c for c in workspace["status"]["conditions"] if c["type"] == "WorkspaceContentDeleted")
    assert "example.io/hold in 1 resource instances" in told["message"]
    assert served.get(item)["metadata"]["deletionTimestamp"]
    assert [each["metadata"]["name"] for each in served.get(item.removesuffix("/held"))["items"]] == ["held"]
    eventually(lambda: "leaving:" in recorded(work), 20)
    served.stop()
    mirror = tmp_path / "clone.git"
    bare = served.data / "repo" / "fleet.git"
    shell(work, f"git clone -q --mirror {shlex.quote(str(bare))} {shlex.quote(str(mirror))}")
    new = plane(mirror)
    assert new.get(item)["metadata"]["uid"] == uid
    free = {"metadata": {"finalizers": None}}
    assert new.request("PATCH", item, free, "application/merge-patch+json").status == 200
    eventually(lambda: new.request("GET", above).status == 404, 20)
    assert "root:shop:web" not in new.workspaces()


def test_a_definition_waits_for_its_objects_and_comes_back_after_them(
    served: Plane, tmp_path: Path, eventually: Any
) -> None:
    work = served.clone(tmp_path / "fleet")
    work.write(f"{WEB}/crd.json", crd())
    held = json.loads(widget(size=1))
    held["metadata"]["finalizers"] = ["example.io/hold"]
    work.write(f"{WEB}/w.json", json.dumps(held))
    work.commit("widgets")
    work.push()
    crds = "/clusters/root:shop:web/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    item = "/clusters/root:shop:web/apis/example.io/v1/namespaces/default/widgets/w"
    first = served.get(f"{crds}/widgets.example.io")["metadata"]["uid"]
    work.git("rm", "-q", f"{WEB}/crd.json", f"{WEB}/w.json")
    work.commit("no more widgets")
    said = [line.removeprefix("treeplane: ").strip() for line in work.push().splitlines()]
    [allow] = [line for line in said if line.startswith("git commit --allow-empty")]
    shell(work, allow)
    work.push()
    assert served.get(item)["metadata"]["deletionTimestamp"]
    waiting = served.get(f"{crds}/widgets.example.io")["metadata"]
    assert (waiting["uid"], bool(waiting["deletionTimestamp"])) == (first, True)
    # It comes back, and is taken as soon as whoever held the old one has let go.
    work.write(f"{WEB}/crd.json", crd())
    work.write(f"{WEB}/w.json", widget(size=3))
    work.commit("widgets again")
    assert "is being deleted still" in work.push()
    free = {"metadata": {"finalizers": None}}
    assert served.request("PATCH", item, free, "application/merge-patch+json").status == 200
    eventually(lambda: served.request("GET", item).status == 200 and served.get(item)["spec"] == {"size": 3}, 20)
    assert served.get(f"{crds}/widgets.example.io")["metadata"]["uid"] != first
