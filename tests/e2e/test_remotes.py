"""A source behind a network that swallows packets: nothing waits for it long, and nothing lags once it is back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.plane import Answer, Clone, Plane
from support.swallowing import Proxy, git_daemon, swallowing

WEB = "root:shop:web"
DEPLOYMENT = "workspaces/root/shop/web/deployment.yaml"
CONFIGMAPS = f"/clusters/{WEB}/api/v1/namespaces/default/configmaps"


@pytest.fixture
def work(example_fleet: Path) -> Clone:
    """The example, where writes are commits, as a work tree that pushes to `fleet.git` beside it."""
    work = Clone(example_fleet)
    config = (work.folder / "treeplane.yaml").read_text().replace("writes: ReadOnly", "writes: Commit")
    work.write("treeplane.yaml", config)
    assert "writes: Commit" in config
    work.git("init", "--quiet", "--initial-branch=main")
    work.commit("begin")
    work.git("clone", "--quiet", "--bare", ".", str(work.folder.parent / "served" / "fleet.git"))
    work.git("remote", "add", "origin", str(work.folder.parent / "served" / "fleet.git"))
    work.git("push", "--quiet", "--set-upstream", "origin", "main")
    return work


@pytest.fixture
def far(work: Clone) -> Iterator[Proxy]:
    with git_daemon(work.folder.parent / "served") as port, swallowing(port) as proxy:
        yield proxy


@pytest.mark.slow
def test_a_network_that_swallows_and_comes_back(
    plane: Callable[..., Plane], work: Clone, far: Proxy, eventually: Any
) -> None:
    server = plane(f"git://127.0.0.1:{far.port}/fleet.git", "--poll", "2")
    assert write(server, "before").status == 201
    far.swallow()
    began = time.monotonic()
    answer = write(server, "meanwhile")
    assert answer.status in (503, 504), answer
    assert time.monotonic() - began < 45
    far.release()
    began = time.monotonic()
    eventually(lambda: write(server, f"after-{time.monotonic_ns()}").status == 201, 40, "writes go on")
    work.git("pull", "--quiet", "--rebase")
    work.edit(DEPLOYMENT, "replicas: 2", "replicas: 3")
    work.commit("three replicas")
    work.push()
    deployment = f"/clusters/{WEB}/apis/apps/v1/namespaces/default/deployments/web"
    eventually(lambda: server.get(deployment)["spec"]["replicas"] == 3, 40, "the push is seen")
    assert time.monotonic() - began < 60


def write(server: Plane, name: str) -> Answer:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    return server.request("POST", CONFIGMAPS, body)
