"""docs/monitoring.md, typed as it says: what a scrape tells of all processes of a server, and of one that is killed."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.counted import Series, series, total
from support.kubectls import KUBECTLS
from support.plane import COMMAND, Plane, environment

TOP = Path(__file__).parents[2]
PAGE = (TOP / "docs" / "monitoring.md").read_text()
LINES = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
[MANIFEST] = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


class Machine:
    """The server's, in whose working directory its `.treeplane` is."""

    def __init__(self, server: Plane, kubectl: str) -> None:
        self.server, self.folder = server, server.data.parent
        (self.folder / "bin").mkdir()
        (self.folder / "bin" / "kubectl").symlink_to(kubectl)

    def run(self, line: str) -> str:
        path = f"{self.folder / 'bin'}:{COMMAND.parent}:/usr/bin:/bin"
        env = environment(PATH=path, KUBECONFIG=".treeplane/admin.kubeconfig")
        done = subprocess.run(["sh", "-c", line], cwd=self.folder, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
        return done.stdout

    def scrape(self) -> Series:
        [line] = [line for line in LINES if line.startswith("curl")]
        return series(self.run(line.replace("127.0.0.1:6443", f"127.0.0.1:{self.server.port}")))


@pytest.fixture(params=[pytest.param(path, id=version) for version, path in KUBECTLS.items() if path][:1])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Machine]:
    fleet = shutil.copytree(TOP / "examples" / "fleet-repo", tmp_path / "server" / "fleet")
    with Plane(fleet, tmp_path / "server" / ".treeplane", "--workers", "2") as server:
        yield Machine(server, request.param)


def test_the_page_as_it_is_printed(machine: Machine, eventually: Callable[..., Any]) -> None:
    work = machine.server.clone(machine.folder / "clone")
    work.write("workspaces/root/monitoring.yaml", MANIFEST)
    work.commit("Let Prometheus scrape")
    work.push()

    def begun() -> bool:
        try:
            machine.run(LINES[0])
        except AssertionError:
            return False
        return True

    eventually(begun, seconds=60, what="the ServiceAccount is there")
    for line in LINES[1:3]:
        machine.run(line)

    def counted() -> Series:
        """Each process tells its numbers now and then, and what they count comes about at its own time."""
        found = machine.scrape()
        processes = {dict(labels)["process"] for name, labels in found if name == "process_start_time_seconds"}
        assert processes == {"api-1", "api-2", "reconciler", "commits", "up"}
        assert total(found, "treeplane_fleet_loaded") == 1
        assert total(found, "treeplane_commits_judged_total", result="loaded") >= 1
        assert total(found, "treeplane_targets", ready="true") == 2
        assert total(found, "treeplane_git_requests_total", service="receive-pack", code="200") >= 1
        assert total(found, "treeplane_status_commits_total") >= 1
        assert total(found, "workqueue_adds_total") > 0
        assert total(found, "treeplane_target_requests_total") > 0
        return found

    found = eventually(counted, seconds=60)

    work.write("workspaces/root/shop/web/broken.yaml", "x: [")
    work.commit("Break a workspace")
    work.push()
    eventually(lambda: total(machine.scrape(), "treeplane_workspaces_held") == 1, seconds=30)

    number = int((machine.server.data / "metrics" / "api-2.process").read_text())
    requests = total(found, "apiserver_request_total")
    os.kill(number, signal.SIGKILL)
    eventually(lambda: total(machine.scrape(), "treeplane_process_ends_total", process="api-2") == 1, seconds=30)
    assert total(machine.scrape(), "apiserver_request_total") >= requests, "what it counted stays"
