"""A change is read before anybody serves it: `treeplane diff` in a clone of a fleet that is served, as its users type
it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.plane import COMMAND, Clone, Plane, environment

EXAMPLE = Path(__file__).parents[2] / "examples" / "fleet-repo"
WEB = "workspaces/root/shop/web"
WEST = "root:infra:locations:eu-west"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    folder = tmp_path_factory.mktemp("reviews")
    with Plane(shutil.copytree(EXAMPLE, folder / "fleet-repo"), folder / "server" / "data") as server:
        yield server


def diff(clone: Clone, *arguments: str) -> tuple[int, str]:
    command = [str(COMMAND), "diff", "-C", str(clone.folder), *arguments]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def runs_where(clone: Clone) -> bool:
    clone.git("fetch", "--quiet")
    name = "workspaces/root/shop/web/_status/_/placements.scheduling.kcp.io/production.yaml"
    return "internal.workload.kcp.io/synctarget" in clone.git("show", f"origin/treeplane/status:{name}", check=False)


def test_a_reviewer_reads_what_a_change_would_do(served: Plane, tmp_path: Path, eventually: Any) -> None:
    clone = served.clone(tmp_path / "fleet")
    eventually(lambda: runs_where(clone), 60, "what is decided is recorded")
    assert diff(clone)[0] == 0
    assert "no differences" in diff(clone)[1]

    clone.edit(f"{WEB}/deployment.yaml", "replicas: 2", "replicas: 3")
    code, told = diff(clone)
    assert code == 1, told
    lines = [line.strip() for line in told.splitlines()]
    assert "workspace root:shop:web configured" in lines
    assert f"Deployment default/web configured ({WEB}/deployment.yaml)" in lines
    assert {"- spec.replicas: 2", "+ spec.replicas: 3"} <= {*lines}
    assert f"sync target {WEST}" in lines, told
    assert "changes Deployment default/web" in lines
    assert any(line.startswith("by Placement root:shop:web production: runs on sync target") for line in lines)

    code, told = diff(clone, "-o", "json")
    assert code == 1
    assert [each["target"] for each in json.loads(told)["syncTargets"]] == [WEST]

    clone.edit(f"{WEB}/deployment.yaml", "replicas: 3", "replicas: three")
    code, told = diff(clone, "-o", "github")
    assert code == 3, told
    assert f"::error file={WEB}/deployment.yaml,line=" in told

    clone.edit(f"{WEB}/deployment.yaml", "replicas: three", "replicas: 3")
    clone.git("switch", "--quiet", "--create", "proposal")
    clone.commit("three replicas")
    code, told = diff(clone, "origin/main...proposal", "-o", "markdown")
    assert code == 1
    assert "+   spec.replicas: 3" in told
    clone.push("origin", "proposal:main")
    eventually(lambda: clone.git("fetch", "--quiet") or diff(clone)[0] == 0, 60, "it is served, so nothing differs")
