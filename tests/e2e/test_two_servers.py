"""Two servers on one repository: one holds it, the others show what it records and write nothing."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.plane import Clone, Plane, PlaneError

WEB = "root:shop:web"
DEPLOYMENT = "workspaces/root/shop/web/deployment.yaml"
URL = f"/clusters/{WEB}/apis/apps/v1/namespaces/default/deployments/web"
CONFIGMAPS = f"/clusters/{WEB}/api/v1/namespaces/default/configmaps"
STATUS = "refs/heads/treeplane/status"


@pytest.fixture
def work(example_fleet: Path) -> Clone:
    """The example, where writes are commits, pushing to `fleet.git` beside it."""
    work = Clone(example_fleet)
    work.edit("treeplane.yaml", "writes: ReadOnly", "writes: Commit")
    work.git("init", "--quiet", "--initial-branch=main")
    work.commit("begin")
    work.git("clone", "--quiet", "--bare", ".", str(work.folder.parent / "fleet.git"))
    work.git("remote", "add", "origin", str(work.folder.parent / "fleet.git"))
    work.git("push", "--quiet", "--set-upstream", "origin", "main")
    return work


@pytest.fixture
def bare(work: Clone) -> Clone:
    return Clone(work.folder.parent / "fleet.git")


@pytest.mark.parametrize("roles", ["together", "apart"])
def test_a_second_server_observes_until_it_is_told_to_take_over(
    plane: Callable[..., Plane], work: Clone, bare: Clone, tmp_path: Path, eventually: Any, roles: str
) -> None:
    """By a URL: nobody takes over by himself."""
    url = f"file://{bare.folder}"
    first = plane(url, "--poll", "1", "--roles", roles, data=tmp_path / "first" / "data")
    eventually(lambda: replicas(first) == 2, 20, "it runs")
    second = plane(url, "--poll", "1", "--roles", roles, data=tmp_path / "second" / "data")
    [command] = re.findall(r"--take-over (\S+)$", second.output(), re.MULTILINE)
    assert "holds this fleet" in second.output()
    assert command == holder(bare)

    # It shows what the first one records.
    eventually(lambda: replicas(second) == 2, 40, "statuses are shown")
    assert uids(second) == uids(first)
    work.edit(DEPLOYMENT, "replicas: 2", "replicas: 3")
    work.commit("three replicas")
    work.push()
    eventually(lambda: second.get(URL)["spec"]["replicas"] == 3, 20, "a commit is shown")

    # It says so, also once root itself was changed.
    work.write("workspaces/root/note.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\n")
    work.commit("a note in root")
    work.push()
    eventually(
        lambda: second.request("GET", "/clusters/root/api/v1/namespaces/default/configmaps/note").status == 200, 20
    )
    eventually(lambda: observing(second) == "Observing", 30, "its condition")
    assert observing(first) == "Followed"

    # It packs its own mirror, as the first one does.
    mirror = Clone(tmp_path / "second" / "data" / "mirror")
    assert mirror.git("config", "gc.auto").strip() == "0"

    # And writes nothing, to git or to clusters.
    answer = second.request("POST", CONFIGMAPS, {"metadata": {"name": "x"}})
    assert (answer.status, answer.body["reason"]) == (503, "ServiceUnavailable")
    assert command in answer.body["message"]
    assert first.request("POST", CONFIGMAPS, {"metadata": {"name": "x"}}).status == 201
    eventually(lambda: second.request("GET", f"{CONFIGMAPS}/x").status == 200, 20, "a write is shown")
    written_by = {line.split("/")[0] for line in writers(bare)}
    assert written_by == {command.partition("/")[0]}

    # Told to, it takes over, and the first one observes.
    second.stop()
    second.arguments = (*second.arguments, "--take-over", command)
    second.start()
    assert "holds this fleet" not in second.output()
    eventually(lambda: "holds this fleet" in first.output(), 20, "the first one notices")
    assert holder(bare) != command
    assert epoch(bare) == 2
    assert second.request("POST", CONFIGMAPS, {"metadata": {"name": "y"}}).status == 201
    assert first.request("POST", CONFIGMAPS, {"metadata": {"name": "z"}}).status == 503
    eventually(lambda: first.request("GET", f"{CONFIGMAPS}/y").status == 200, 20, "the first one shows it")
    assert uids(second) == uids(first)

    # Left where it is, the flag does nothing a second time.
    first.stop()
    first.arguments = (*first.arguments, "--take-over", holder(bare))
    first.start()
    eventually(lambda: "holds this fleet" in second.output(), 20, "the second one notices")
    before = holder(bare)
    second.stop()
    second.start()
    assert "holds this fleet" in second.output()
    assert holder(bare) == before


def test_on_one_machine_the_last_start_wins(
    plane: Callable[..., Plane], work: Clone, bare: Clone, tmp_path: Path, eventually: Any
) -> None:
    first = plane(bare.folder, data=tmp_path / "first" / "data")
    eventually(lambda: replicas(first) == 2, 20, "it runs")
    before = uids(first)
    second = plane(bare.folder, data=tmp_path / "second" / "data")
    assert "holds this fleet" not in second.output()
    eventually(lambda: "holds this fleet" in first.output(), 10, "the first one notices at once")
    eventually(lambda: first.request("GET", URL).status == 200, 20, "it is readable again")
    assert uids(second) == before == uids(first)
    # The process that serves may crash: that is no start of a server.
    eventually(lambda: replicas(second) == 2, 20, "it runs there")
    first.stop(signal.SIGKILL)
    second.stop(signal.SIGKILL)
    second.start()
    assert "holds this fleet" not in second.output()
    assert epoch(bare) == 2, "a restart goes on in the same epoch"


def test_a_copied_data_directory_is_another_server(
    plane: Callable[..., Plane], work: Clone, bare: Clone, tmp_path: Path, eventually: Any
) -> None:
    url = f"file://{bare.folder}"
    first = plane(url, "--poll", "1", data=tmp_path / "first" / "data")
    eventually(lambda: holder(bare), 20, "it has recorded")
    first.stop()
    before = last_start(first)
    shutil.copytree(tmp_path / "first" / "data", tmp_path / "second" / "data", ignore=shutil.ignore_patterns("*.sock"))
    first.start()
    work.edit(DEPLOYMENT, "replicas: 2", "replicas: 3")
    work.commit("three replicas")
    work.push()
    # A start makes its number last when it first writes: until then the file names the start that was copied.
    eventually(lambda: last_start(first) != before, 20, "it wrote again")
    eventually(lambda: holder(bare).endswith(f"/{last_start(first)}"), 20, "it pushed that")
    second = plane(url, "--poll", "1", data=tmp_path / "second" / "data")
    assert "holds this fleet" in second.output()
    assert second.request("POST", CONFIGMAPS, {"metadata": {"name": "x"}}).status == 503
    assert first.request("POST", CONFIGMAPS, {"metadata": {"name": "x"}}).status == 201


def test_the_loops_of_the_readme(
    plane: Callable[..., Plane], example_fleet: Path, tmp_path: Path, eventually: Any
) -> None:
    """Stop and start again; lose everything, serve a clone, and everybody's clones go on working."""
    server = plane(example_fleet)
    eventually(lambda: replicas(server) == 2, 20, "it runs")
    before = uids(server)
    line = server.clone_words()
    server.stop()
    server.start()
    assert "holds this fleet" not in server.output()
    mine, theirs = server.clone(tmp_path / "mine"), server.clone(tmp_path / "theirs")
    server.stop()
    shutil.rmtree(server.data)
    server.repository = mine.folder
    server.start()
    assert "holds this fleet" not in server.output()
    assert f"created {server.data}/repo/fleet.git from {mine.folder}" in server.output()
    assert uids(server) == before
    assert server.clone_words() == line
    theirs.edit(DEPLOYMENT, "replicas: 2", "replicas: 3")
    theirs.commit("three replicas")
    theirs.push()
    eventually(lambda: replicas(server) == 3, 20, "what others push to the same address is served")
    mine.git("pull", "--quiet", "--rebase")
    assert "treeplane/status" in mine.git("branch", "--remotes")


def test_a_clone_of_one_branch_does_not_begin_anew(
    plane: Callable[..., Plane], example_fleet: Path, tmp_path: Path, eventually: Any
) -> None:
    server = plane(example_fleet)
    eventually(lambda: holder(Clone(server.data / "repo" / "fleet.git")), 20, "it has recorded")
    before = uids(server)
    server.stop()
    clone = tmp_path / "clone"
    source = server.data / "repo" / "fleet.git"
    subprocess.run(["git", "clone", "--quiet", "--single-branch", str(source), str(clone)], check=True)
    with pytest.raises(PlaneError, match="was served before") as refused:
        plane(clone, data=tmp_path / "new" / "data")
    said = str(refused.value)
    assert "--new-identities" in said
    [command] = [line.strip() for line in said.splitlines() if line.startswith("  git ")]
    subprocess.run(command, shell=True, check=True)
    assert uids(plane(clone, data=tmp_path / "new" / "data")) == before


def last_start(server: Plane) -> int:
    return int(json.loads((server.data / "installation").read_text())["starts"][-1])


def observing(server: Plane) -> str:
    found = server.get("/clusters/root/apis/core.kcp.io/v1alpha1/logicalclusters/cluster")["status"]["conditions"]
    [reason] = [condition["reason"] for condition in found if condition["type"] == "FleetFollowed"]
    return str(reason)


def replicas(server: Plane) -> int:
    return int(server.get(URL).get("status", {}).get("readyReplicas", 0))


def uids(server: Plane) -> dict[str, str]:
    """Of what git declares; runtime objects are each server's own."""
    found = server.everything()
    marked = {k: v for k, v in found.items() if "treeplane.dev/source-path" in v["metadata"].get("annotations", {})}
    assert len(marked) > 30
    return {key: item["metadata"]["uid"] for key, item in marked.items()}


def holder(bare: Clone) -> str:
    form = "--format=%(trailers:key=Writer,valueonly)"
    return bare.git("log", "-1", form, STATUS, check=False).strip()


def writers(bare: Clone) -> list[str]:
    form = "--format=%(trailers:key=Writer,valueonly)"
    return bare.git("log", "--first-parent", form, f"{STATUS}", "--not", "main").split()


def epoch(bare: Clone) -> int:
    return int(bare.git("log", "-1", "--format=%(trailers:key=Epoch,valueonly)", STATUS).strip())
