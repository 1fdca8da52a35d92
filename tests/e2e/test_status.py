"""`treeplane status` and `treeplane reconcile-now` against real servers: what is broken is told, by the server and by
its data directory, also once the server is gone; and a tenant is told of his own workspace alone."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.plane import COMMAND, Clone, Plane, environment
from support.room import is_little
from support.swallowing import git_daemon

WEB = "root:shop:web"
DEPLOYMENT = "workspaces/root/shop/web/deployment.yaml"
CHECKOUT = "workspaces/root/shop/checkout/checkout.yaml"
DOCUMENT = Path(__file__).parents[2] / "docs" / "status.md"
TENANT = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: tenant}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: User, name: tenant}]
"""


def ran(*words: str, config: Path | None = None, cwd: Path | None = None) -> tuple[int, str]:
    """Exit code, and what was printed."""
    more = {"KUBECONFIG": str(config)} if config is not None else {}
    command = [str(COMMAND), *words]
    result = subprocess.run(command, env=environment(**more), cwd=cwd, capture_output=True, text=True, check=False)
    return result.returncode, result.stdout + result.stderr


def is_well(server: Plane) -> bool:
    """Once each Placement was looked at: before, none of them says what is wrong."""
    found = server.get("/clusters/*/apis/scheduling.kcp.io/v1alpha1/placements")["items"]
    said = [{c["type"]: c["status"] for c in (each.get("status") or {}).get("conditions") or []} for each in found]
    synced = bool(said) and all(each.get("Synced") == "True" for each in said)
    return synced and ran("status", config=server.kubeconfig)[0] == 0


def kinds(printed: str) -> list[str]:
    return [each["kind"] for each in json.loads(printed)["wrong"]]


@pytest.fixture(autouse=True)
def room(tmp_path: Path) -> None:
    """What is said of a disk that is nearly full is right, and in the way here."""
    if is_little(tmp_path):
        pytest.skip("the disk is nearly full, which is what status would say")


@pytest.fixture
def work(example_fleet: Path) -> Clone:
    """The example as a work tree that pushes to `fleet.git` beside it."""
    work = Clone(example_fleet)
    work.git("init", "--quiet", "--initial-branch=main")
    work.commit("begin")
    work.git("clone", "--quiet", "--bare", ".", str(work.folder.parent / "served" / "fleet.git"))
    work.git("remote", "add", "origin", str(work.folder.parent / "served" / "fleet.git"))
    work.git("push", "--quiet", "--set-upstream", "origin", "main")
    return work


def test_the_commands_of_its_page(plane: Callable[..., Plane], example_fleet: Path, eventually: Any) -> None:
    """Each as it is printed there, where the data directory is the usual one."""
    server = plane(example_fleet)
    here = server.data.parent / "here"
    here.mkdir()
    (here / ".treeplane").symlink_to(server.data)
    blocks = re.findall(r"^```\n(.*?)^```", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    commands = [line for block in blocks for line in block.splitlines() if line.startswith("treeplane ")]
    assert len(commands) == 5
    eventually(lambda: is_well(server), 60, "all is well once all is placed")
    for command in commands:
        code, said = ran(*command.split()[1:], config=server.kubeconfig, cwd=here)
        assert code == 0, f"{command}: {said}"
        assert "served at" in said or "is served" in said or '"wrong": []' in said or "wrong: []" in said
    [waits] = [line for block in blocks for line in block.splitlines() if line.startswith("until ")]
    path = f"{COMMAND.parent}:{os.environ['PATH']}"
    subprocess.run(["bash", "-ec", waits], env=environment(KUBECONFIG=str(server.kubeconfig), PATH=path), check=True)
    code, said = ran("reconcile-now", WEB, config=server.kubeconfig)
    assert (code, "has its content from the fleet's repository" in said) == (3, True)


def test_what_is_broken_is_told_by_the_server_and_by_what_it_leaves(
    plane: Callable[..., Plane], work: Clone, eventually: Any
) -> None:
    with git_daemon(work.folder.parent / "served") as port:
        server = plane(f"git://127.0.0.1:{port}/fleet.git", "--poll", "3600")
        config, data = server.kubeconfig, str(server.data)
        eventually(lambda: is_well(server), 60)
        good = work.git("rev-parse", "HEAD").strip()
        # What is pushed is not seen for an hour, unless somebody says so.
        work.edit(CHECKOUT, "CURRENCY: EUR", "CURRENCY: CHF")
        head = work.commit("a currency")
        work.push()
        code, said = ran("reconcile-now", config=config)
        assert (code, said) == (0, f"looked at the repository, the branch is at {head:.10}, and that is served\n")
        work.edit(DEPLOYMENT, "replicas: 2", "replicas: many")
        bad = work.commit("break the shop window")
        work.push()
        code, said = ran("reconcile-now", "-o", "json", config=config)
        assert code == 1
        assert json.loads(said) == {
            "workspace": "root", "answered": True, "head": bad, "served": bad, "wrong": "", "held": 1,
        }  # fmt: skip
        code, said = ran("status", config=config)
        assert code == 1
        assert re.match(rf"held +{WEB}: {DEPLOYMENT}:\d+: .*spec\.replicas", said)
        assert f"    treeplane validate -w {WEB}\n" in said
        assert good != bad
    code, said = ran("reconcile-now", config=config)
    assert code == 1
    assert said.startswith(f"looked at the repository, and {bad:.10} is served: "), said
    code, said = ran("status", config=config)
    assert code == 1
    assert re.match(r"remote +the fleet: no answer since \S+Z, it is asked again at \S+Z: ", said), said
    assert WEB in said
    # The data directory says the same, byte for byte.
    assert eventually(lambda: ran("status", config=config) == ran("status", "--data-dir", data), 60)
    server.stop(signal.SIGKILL)
    assert eventually(lambda: ran("status", config=config)[0] == 3, 60)
    code, said = ran("status", "--data-dir", data, "-o", "json")
    assert code == 1
    # Nor can anything be recorded there, which is told once there is something.
    assert [kind for kind in kinds(said) if kind != "status-branch"] == ["stopped", "remote", "held"]
    assert json.loads(said)["wrong"][0]["command"] == f"treeplane up --data-dir {data}"


def test_a_tenant_is_told_of_his_workspace_alone(
    plane: Callable[..., Plane], example_fleet: Path, tmp_path: Path, eventually: Any
) -> None:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text("sesame,tenant,tenant-uid\n")
    server, token = plane(example_fleet, "--token-auth-file", str(tokens)), "sesame"
    clone = server.clone(tmp_path / "clone")
    clone.write("workspaces/root/shop/web/tenant.yaml", TENANT)
    clone.commit("a tenant")
    clone.push()
    theirs = config_of(server, tmp_path / "tenant.config", token)
    eventually(lambda: ran("status", config=theirs)[0] == 0, 60)
    clone.edit(DEPLOYMENT, "replicas: 2", "replicas: many")
    clone.edit(CHECKOUT, "kind: ConfigMap", "kind: ConfigMap\nkind: ConfigMap")
    clone.commit("break two")
    clone.push()
    # Placements that nobody has looked at yet are told of, too.
    eventually(lambda: kinds(ran("status", "-o", "json", config=server.kubeconfig)[1]).count("held") == 2, 60)
    code, said = ran("status", config=theirs)
    assert code == 1
    assert re.match(rf"held +{WEB}: ", said)
    assert "checkout" not in said
    assert "not looked at: the fleet as a whole" in said
    # Nor may he ring for anybody else, or be told why he may not.
    code, said = ran("reconcile-now", config=theirs)
    assert (code, "`post` and `get` on the URL /reconcile" in said) == (3, True)
    server.kubectl("get", "--raw", "/clusters/root/status")
    assert "Forbidden" in refused(server, token, "/clusters/root/status")
    assert "Forbidden" in refused(server, token, "/clusters/root:shop:checkout/status")


def refused(server: Plane, token: str, path: str) -> str:
    """The reason of a refusal."""
    base = yaml.safe_load(server.kubeconfig.read_text())["clusters"][0]["cluster"]["server"].partition("/clusters")[0]
    command = ["curl", "-s", "--cacert", str(server.data / "keys" / "ca.crt"), "-H", f"Authorization: Bearer {token}",
               f"{base}{path}"]  # fmt: skip
    return str(json.loads(subprocess.run(command, capture_output=True, check=True).stdout).get("reason"))


def config_of(server: Plane, file: Path, token: str) -> Path:
    """A kubeconfig for the workspace, with that token."""
    base = yaml.safe_load(server.kubeconfig.read_text())["clusters"][0]["cluster"]["server"].partition("/clusters")[0]
    cluster = {"server": f"{base}/clusters/{WEB}", "certificate-authority": str(server.data / "keys" / "ca.crt")}
    said = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "web",
        "contexts": [{"name": "web", "context": {"cluster": "web", "user": "web"}}],
        "clusters": [{"name": "web", "cluster": cluster}],
        "users": [{"name": "web", "user": {"token": token}}],
    }
    file.write_text(yaml.safe_dump(said))
    return file
