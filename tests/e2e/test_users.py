"""docs/users.md, typed as it says, on the machine of a real server: who may what afterwards."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.kubectls import KUBECTLS
from support.plane import COMMAND, Plane, environment

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "fleet-repo"
_BLOCKS = re.findall(r"```sh\n(.*?)```", (ROOT / "docs/users.md").read_text(), re.DOTALL)
[_MANIFEST] = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/users.md").read_text(), re.DOTALL)
LINES = [line for block in _BLOCKS for line in block.splitlines()]


class Machine:
    """The server's, in whose working directory its `.treeplane` is."""

    def __init__(self, server: Plane, kubectl: str) -> None:
        self.server, self.folder = server, server.data.parent
        self._bin = self.folder / "bin"
        self._bin.mkdir(exist_ok=True)
        (self._bin / "kubectl").unlink(missing_ok=True)
        (self._bin / "kubectl").symlink_to(kubectl)

    def run(self, line: str, *, kubeconfig: str = ".treeplane/admin.kubeconfig", code: int = 0) -> str:
        path = f"{self._bin}:{COMMAND.parent}:/usr/bin:/bin"
        env = environment(PATH=path, KUBECONFIG=kubeconfig)
        done = subprocess.run(
            ["sh", "-c", line], cwd=self.folder, env=env, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == code, f"{line}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def typed(self, begins: str) -> str:
        """The one line of the page that begins so."""
        [line] = [line for line in LINES if line.startswith(begins)]
        return self.run(line)

    def may(self, verb: str, kubeconfig: str) -> bool:
        """Whether somebody may do something with ConfigMaps."""
        path = f"{self._bin}:{COMMAND.parent}:/usr/bin:/bin"
        done = subprocess.run(
            ["kubectl", "auth", "can-i", verb, "configmaps"],
            cwd=self.folder, env=environment(PATH=path, KUBECONFIG=kubeconfig),
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.stdout.strip() == "yes"


@pytest.fixture(params=[pytest.param(path, id=version) for version, path in KUBECTLS.items() if path])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Machine]:
    fleet = shutil.copytree(EXAMPLE, tmp_path / "server" / "fleet")
    with Plane(fleet, tmp_path / "server" / ".treeplane") as server:
        yield Machine(server, request.param)


def test_the_page_as_it_is_printed(machine: Machine, eventually: Any) -> None:
    assert "until" in machine.typed("treeplane kubeconfig --user ann")
    ann = "ann.kubeconfig"
    assert not machine.may("list", ann)

    said = machine.run(LINES[1])
    assert "workspaces/root/shop/_access/user-ann.yaml created" in said
    assert "is served" in said
    assert machine.may("create", ann)
    machine.run("kubectl get configmaps", kubeconfig=ann)
    assert "denied" in machine.run("kubectl --server $(kubectl config view --minify -o "
                                   "jsonpath={.clusters[0].cluster.server} | sed s/:shop//) get configmaps 2>&1 || "
                                   "echo denied", kubeconfig=ann)  # fmt: skip

    assert "group-devs.yaml created" in machine.typed("treeplane grant devs view root:media")
    shown = machine.typed("treeplane grant ann admin root:shop --dry-run")
    assert shown.startswith("# workspaces/root/shop/_access/user-ann.yaml\n")
    assert [each["roleRef"]["name"] for each in yaml.safe_load_all(shown)][-1] == "admin"
    assert "unchanged" in machine.run(LINES[1])

    assert "user-ann.yaml deleted" in machine.run(LINES[4])
    assert not machine.may("list", ann)

    work = machine.server.clone(machine.folder / "work")
    work.write("workspaces/root/shop/builder.yaml", _MANIFEST)
    work.commit("A program")
    work.push()
    machine.typed("treeplane kubeconfig --service-account")
    assert "default:builder" in machine.run("kubectl auth whoami", kubeconfig="program.kubeconfig")

    assert "workspaces/root/shop/lab/workspace.yaml created" in machine.typed("treeplane ws create lab")
    assert "is served" in machine.typed("treeplane grant ann cluster-admin root:shop:lab")
    machine.run("treeplane kubeconfig --user ann --workspace root:shop:lab -f lab.kubeconfig")
    assert machine.may("delete", "lab.kubeconfig")
    assert not machine.may("list", ann)
    assert sorted(each.name for each in machine.folder.iterdir() if each.suffix == ".kubeconfig") == [
        "ann.kubeconfig", "lab.kubeconfig", "program.kubeconfig"
    ]  # fmt: skip


def test_where_the_fleet_is_read_only_the_refusal_becomes_files(machine: Machine) -> None:
    said = machine.run("treeplane ws create blog")
    assert "treeplane ws create writes it" in said
    assert "so it is written as files" in said
    assert "workspaces/root/blog/workspace.yaml created" in said
    assert "blog" in machine.run("kubectl get workspaces")


def test_a_person_who_is_granted_nothing_makes_no_tokens(machine: Machine) -> None:
    machine.run(LINES[0])
    line = "treeplane kubeconfig --service-account default/default --workspace root:shop -f stolen.kubeconfig"
    assert "serviceaccounts/token" in machine.run(line, kubeconfig="ann.kubeconfig", code=3)
    assert not (machine.folder / "stolen.kubeconfig").exists()


def test_a_server_that_does_not_run_is_told_of(machine: Machine) -> None:
    machine.server.stop()
    assert "does not run" in machine.run(LINES[1], code=3)
    machine.run(LINES[0])
