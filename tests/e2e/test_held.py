"""Bad manifests: their workspace is held at its last good commit, everybody is told, nobody else notices."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from support.plane import COMMAND, Clone, Plane, environment

WEB = "root:shop:web"
DEPLOYMENT = "workspaces/root/shop/web/deployment.yaml"
CONFIG = "workspaces/root/shop/web/config.yaml"
CHECKOUT = "workspaces/root/shop/checkout/checkout.yaml"
NEW_APP = "workspaces/root/shop/new/app.yaml"
NEW_TEAM = {
    "workspaces/root/shop/new/workspace.yaml": "",  # of the default type
    NEW_APP: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\ndata: {a: 1}\n",
}


def test_a_broken_manifest_holds_its_own_workspace_alone(
    plane: Callable[..., Plane], example_fleet: Path, tmp_path: Path, eventually: Any
) -> None:
    server = plane(example_fleet)
    clone = server.clone(tmp_path / "fleet")
    clone.edit(DEPLOYMENT, "replicas: 2", "replicas: many")
    clone.edit(CONFIG, "kind: ConfigMap", "kind: ConfigMap\nkind: ConfigMap")
    clone.edit(CHECKOUT, "CURRENCY: EUR", "CURRENCY: CHF")
    for path, content in NEW_TEAM.items():
        clone.write(path, content)

    code, said = validate(clone.folder)
    assert code == 1
    errors = [line for line in said.splitlines() if line.startswith("workspaces/")]
    assert [error.split(":")[0] for error in errors] == [NEW_APP, CONFIG, DEPLOYMENT]
    assert "spec.replicas" in errors[2]

    bad = clone.commit("break the shop window, add a team that never was good")
    # What is served stands on the status branch, which a clone made at once may not have yet.
    eventually(lambda: "treeplane/status" in clone.git("ls-remote", "origin"), 20)
    clone.git("fetch", "--quiet")
    compared = f"{said.rstrip()}, compared with {clone.git('rev-parse', 'HEAD~1'):.10}\n"
    assert validate(clone.folder, "--rev", "HEAD") == (1, compared)
    assert validate(clone.folder, "--rev", "HEAD~1")[0] == 0
    clone.push()

    # The neighbour moves on.
    currency = ("get", "configmap", "checkout", "-n", "checkout", "-o", "jsonpath={.data.CURRENCY}")
    eventually(lambda: server.kubectl(*currency, workspace="root:shop:checkout") == "CHF", 30)
    # The workspace stays, and says why: in its condition, where the server runs, and on the status branch.
    condition = eventually(lambda: held(server, "web"), 30)
    replicas = ("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}")
    assert server.kubectl(*replicas, workspace=WEB) == "2"
    eventually(lambda: all(error in server.output() for error in errors[1:]), 30, "each error is printed")
    recorded = eventually(lambda: bad in source_commit(clone) and summary(clone, "web"), 30)
    assert recorded["errors"] == errors[1:]
    assert recorded["served"] == recorded["origin"]
    for error in errors[1:]:
        assert error in condition
    # One that never had a good commit answers 503 with its errors; lists over many leave it out.
    answer = server.request("GET", "/clusters/root:shop:new/api/v1/configmaps")
    assert answer.status == 503
    assert errors[0] in answer.body["message"]
    assert "root:shop:new" not in server.workspaces()
    assert "Ready" in server.kubectl("get", "workspace", "web", "--no-headers", workspace="root:shop")

    # A held workspace outlives the server.
    server.stop()
    server.start()
    assert DEPLOYMENT in server.output()
    assert held(server, "web") == condition
    assert server.kubectl(*replicas, workspace=WEB) == "2"

    clone.edit(DEPLOYMENT, "replicas: many", "replicas: 4")
    clone.edit(CONFIG, "kind: ConfigMap\nkind: ConfigMap", "kind: ConfigMap")
    clone.edit(NEW_APP, "{a: 1}", "{a: '1'}")
    good = clone.commit("mend it")
    assert validate(clone.folder)[0] == 0
    clone.push()
    eventually(lambda: server.kubectl(*replicas, workspace=WEB) == "4", 30)
    eventually(lambda: not held(server, "web"), 30)
    app = ("get", "configmap", "app", "-o", "jsonpath={.data.a}")
    eventually(lambda: server.kubectl(*app, workspace="root:shop:new", check=False) == "1", 30)
    eventually(lambda: good in source_commit(clone) and "errors" not in summary(clone, "web"), 30)


def test_a_commit_without_workspaces_deletes_nothing(
    plane: Callable[..., Plane], example_fleet: Path, tmp_path: Path, eventually: Any
) -> None:
    server = plane(example_fleet)
    clone = server.clone(tmp_path / "fleet")
    before = {key: item["metadata"]["uid"] for key, item in server.everything().items()}
    clone.git("rm", "-q", "-r", "workspaces")
    head = clone.commit("all gone")
    clone.push()
    eventually(lambda: f"commit {head:.10} is held" in server.output(), 30)
    clone.git("revert", "--no-edit", "HEAD")
    clone.edit(DEPLOYMENT, "replicas: 2", "replicas: 3")
    clone.edit("treeplane.yaml", "kind: Fleet", "kind: Fleets")
    head = clone.commit("three replicas of a broken fleet")
    clone.push()
    eventually(lambda: f"commit {head:.10} is held" in server.output(), 30)
    assert "treeplane.yaml:" in server.output()
    after = {key: item["metadata"]["uid"] for key, item in server.everything().items()}
    assert {key: after.get(key) for key in before} == before
    clone.edit("treeplane.yaml", "kind: Fleets", "kind: Fleet")
    clone.commit("mended")
    clone.push()
    replicas = ("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}")
    eventually(lambda: server.kubectl(*replicas, workspace=WEB) == "3", 30)


def test_validate_tells_errors_from_wrong_usage(tmp_path: Path) -> None:
    command = [str(COMMAND), "validate"]
    for arguments, text in (
        ([str(tmp_path / "nowhere")], "does not exist"),
        ([str(tmp_path), "--rev", "HEAD"], "--rev needs a git repository"),
    ):
        done = subprocess.run([*command, *arguments], env=environment(), capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert text in done.stderr


def validate(folder: Path, *arguments: str) -> tuple[int, str]:
    command = [str(COMMAND), "validate", str(folder), *arguments]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout


def held(server: Plane, name: str) -> str:
    """What the conditions of a workspace of root:shop say against it."""
    workspace = json.loads(server.kubectl("get", "workspace", name, "-o", "json", workspace="root:shop"))
    bad = [each for each in workspace["status"]["conditions"] if each["status"] != "True"]
    return " ".join(each.get("message", "") for each in bad)


def source_commit(clone: Clone) -> str:
    clone.git("fetch", "--quiet")
    return clone.git("log", "-1", "--format=%(trailers:key=Source-Commit,valueonly)", "origin/treeplane/status")


def summary(clone: Clone, name: str) -> dict[str, Any]:
    shown = clone.git("show", f"origin/treeplane/status:workspaces/root/shop/{name}/_summary.yaml")
    found: dict[str, Any] = yaml.safe_load(shown)
    return found


def followed(server: Plane) -> dict[str, Any]:
    cluster = server.get("/clusters/root/apis/core.kcp.io/v1alpha1/logicalclusters/cluster")
    found: dict[str, dict[str, Any]] = {each["type"]: each for each in cluster["status"]["conditions"]}
    assert found["CommitApplied"]["message"] == "all that was judged of it is served"
    return found["FleetFollowed"]


def test_trouble_of_the_fleet_is_told_and_reads_go_on(
    plane: Callable[..., Plane], example_fleet: Path, tmp_path: Path, eventually: Any
) -> None:
    server = plane(example_fleet)
    began = followed(server)
    assert began["status"] == "True"
    work = server.clone(tmp_path / "fleet")
    work.edit("treeplane.yaml", "writes: ReadOnly", "writes: Nonsense")
    head = work.commit("a mistake")
    work.push()
    eventually(lambda: followed(server)["status"] == "False", 20)
    told = followed(server)
    assert told["reason"] == "Held"
    assert f"commit {head[:10]} is held: treeplane.yaml:" in told["message"]
    ready = server.request("GET", "/readyz?verbose")
    assert (ready.status, "[-]fleet Held\n" in ready.body) == (200, True)
    assert f"[-]fleet Held: commit {head[:10]} is held" in server.request("GET", "/clusters/root/readyz?verbose").body

    work.git("revert", "--no-edit", "HEAD")
    reverted = work.git("rev-parse", "HEAD").strip()
    work.push()
    eventually(lambda: followed(server)["status"] == "True", 20)
    eventually(lambda: source_commit(work).strip() == reverted, 20, "it is recorded")
    repository = server.data / "repo" / "fleet.git"
    repository.rename(repository.with_name("elsewhere"))
    eventually(lambda: followed(server)["reason"] == "RemoteAway", 30)
    assert server.get("/clusters/root/api/v1/namespaces")["items"]
    repository.with_name("elsewhere").rename(repository)
    eventually(lambda: followed(server)["status"] == "True", 30)
    last = followed(server)
    assert last["lastTransitionTime"] >= began["lastTransitionTime"]
    server.stop()
    server.start()
    assert followed(server) == last
