"""A fleet whose forge takes no push, as docs/repositories.md says: what it observes goes to a repository of its own."""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support import plane as planes
from support.gitserver import GitAsked, GitServer
from support.plane import COMMAND, Clone, Plane, environment
from support.swallowing import git_daemon

WEB = "root:shop:web"
DEPLOYMENT = "workspaces/root/shop/web/deployment.yaml"
OBJECT = f"/clusters/{WEB}/apis/apps/v1/namespaces/default/deployments/web"
ROOT = "/clusters/root/apis/core.kcp.io/v1alpha1/logicalclusters/cluster"
REF = "refs/heads/treeplane/status"
PAGE = Path(__file__).parents[2] / "docs" / "repositories.md"
SHOWN = "https://git.example.org/shop/status.git"


class Forge:
    """Of the fleet: what it serves can be read alone. `status`: of the repository beside it, which may be `away`."""

    def __init__(self, folder: Path, port: int, status: GitServer) -> None:
        self.folder, self.status, self.work = folder, status, Clone(folder.parent / "fleet-repo")
        self.url = f"git://127.0.0.1:{port}/fleet.git"
        self.says = 0
        status.spoil = self._spoil

    def _spoil(self, asked: GitAsked) -> bool:
        if self.says == 0 or (self.says == 429 and asked.service == "upload-pack"):
            return False
        asked.reply(b"not now", self.says)
        return True

    def head(self) -> str:
        found = subprocess.run(
            ["git", "-C", str(self.status.folder / "status.git"), "rev-parse", "--verify", "-q", REF],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return found.stdout.strip()

    def replicas(self, number: int) -> str:
        """Pushes that many, by whoever may."""
        text = (self.work.folder / DEPLOYMENT).read_text()
        self.work.write(DEPLOYMENT, re.sub(r"replicas: \d+", f"replicas: {number}", text, count=1))
        commit = self.work.commit(f"{number} replicas")
        self.work.git("push", "--quiet", str(self.folder / "fleet.git"), "main")
        return commit


@pytest.fixture
def forge(example_fleet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Forge]:
    folder = tmp_path / "served"
    (tmp_path / "status").mkdir()
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "status" / "status.git")], check=True)
    server = GitServer(tmp_path / "status", tmp_path / "keys-of-git")
    ca = tmp_path / "git-ca.crt"
    ca.write_bytes(server.ca)
    monkeypatch.setattr(planes, "environment", lambda **more: environment(GIT_SSL_CAINFO=str(ca), **more))
    work = Clone(example_fleet)
    named = f"  status: {{repository: '{server.url('status.git')}'}}\n"
    work.write("treeplane.yaml", (example_fleet / "treeplane.yaml").read_text() + named)
    work.git("init", "--quiet", "--initial-branch=main")
    work.commit("begin")
    work.git("clone", "--quiet", "--bare", ".", str(folder / "fleet.git"))
    with git_daemon(folder, "--forbid-override=receive-pack", "--disable=receive-pack") as port:
        yield Forge(folder, port, server)
    server.close()


def condition(server: Plane) -> dict[str, Any]:
    found = server.get(ROOT)["status"]["conditions"]
    return next(each for each in found if each["type"] == "FleetFollowed")


def wrong(server: Plane) -> str:
    done = subprocess.run(
        [str(COMMAND), "status", "--kubeconfig", str(server.kubeconfig)],
        env=environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout


@pytest.mark.slow
def test_a_forge_that_takes_no_push(plane: Callable[..., Plane], forge: Forge, tmp_path: Path, eventually: Any) -> None:
    server = plane(forge.url, "--poll", "1", "--roles", "apart")
    eventually(forge.head, 30, "the status is there")
    uid = server.get(OBJECT)["metadata"]["uid"]
    assert not Clone(forge.folder / "fleet.git").git("for-each-ref", REF), "and not in the fleet's own repository"

    # It limits pushes: everything goes on, and that is told.
    forge.says = 429
    served = forge.replicas(5)
    eventually(lambda: server.get(OBJECT)["spec"]["replicas"] == 5, 30, "the push is served")
    eventually(lambda: "waits in the mirror since 20" in condition(server)["message"], 30, "what waits is told")
    assert condition(server)["reason"] == "StatusBranchRefused"
    assert "429" in condition(server)["message"]
    assert "treeplane reconcile-now" in wrong(server).partition("429")[2]
    # A push that had begun before that may have come through, but nothing that names this commit.
    assert served not in Clone(forge.status.folder / "status.git").git("log", "--format=%B", REF)
    forge.says = 0
    eventually(lambda: condition(server)["status"] == "True", 90, "it is over")
    eventually(lambda: served in Clone(forge.status.folder / "status.git").git("log", "-1", "--format=%B", REF), 60)

    # In a clone, by what the page says.
    work = tmp_path / "work"
    subprocess.run(["git", "clone", "-q", forge.url, str(work)], env=environment(), check=True)
    [typed] = [each for each in re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL) if SHOWN in each]
    ca = {"GIT_SSL_CAINFO": str(tmp_path / "git-ca.crt")}
    lines = typed.replace(SHOWN, forge.status.url("status.git"))
    subprocess.run(["sh", "-ec", lines], cwd=work, env=environment(**ca), check=True, capture_output=True)
    for words in (f"trace deployment/web -n default -w {WEB} --target eu-west", "validate --rev HEAD", "drill"):
        done = subprocess.run(
            [str(COMMAND), *words.split()], cwd=work, env=environment(**ca), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"

    # The machine is lost, and that repository is away: nothing is served before it answers.
    server.stop()
    keys = shutil.copytree(server.data / "keys", tmp_path / "kept")
    forge.says = 503
    done = subprocess.run(
        [str(COMMAND), "drill"], cwd=work, env=environment(**ca), capture_output=True, text=True, check=False
    )
    assert done.returncode == 4, done.stdout + done.stderr
    new = Plane(forge.url, tmp_path / "new" / "data", "--keys", str(keys), "--poll", "1")
    answers = threading.Thread(target=_answers_once_it_waits, args=(new, forge, eventually))
    answers.start()
    try:
        new.start()
        answers.join()
        assert forge.says == 0, "it began without its record"
        assert new.get(OBJECT)["metadata"]["uid"] == uid
        assert new.get(OBJECT)["spec"]["replicas"] == 5
    finally:
        new.stop()


@pytest.mark.slow
@pytest.mark.parametrize("roles", ["auto", "apart"])
def test_it_is_moved_while_the_server_runs(
    plane: Callable[..., Plane], forge: Forge, tmp_path: Path, eventually: Any, roles: str
) -> None:
    """With all of its history, by who runs the server; one that observes looks there, too."""
    named = (forge.work.folder / "treeplane.yaml").read_text()
    url = forge.status.url("status.git")
    forge.work.write("treeplane.yaml", named.replace(f"  status: {{repository: '{url}'}}\n", ""))
    forge.work.git("commit", "--quiet", "--all", "--amend", "--message", "without one, from the beginning")
    bare = Clone(forge.folder / "fleet.git")
    forge.work.git("push", "--quiet", "--force", str(bare.folder), "main")
    words = ("--poll", "1", "--status-repository", url)
    server = plane(f"file://{bare.folder}", *words, "--roles", roles, data=tmp_path / "one" / "data")
    eventually(lambda: bare.git("for-each-ref", REF), 30, "it is in the fleet's own repository")
    beside = plane(f"file://{bare.folder}", *words, data=tmp_path / "two" / "data")
    uid = server.get(OBJECT)["metadata"]["uid"]
    forge.work.write("treeplane.yaml", named)
    commit = forge.work.commit("with one")
    forge.work.git("push", "--quiet", str(bare.folder), "main")
    eventually(forge.head, 90, "it is there")
    there, old = Clone(forge.status.folder / "status.git"), bare.git("rev-parse", REF).strip()
    assert commit in bare.git("log", "-1", "--format=%B", REF), "where it was says so"
    there.git("merge-base", "--is-ancestor", old, REF)
    served = forge.replicas(7)
    for each in (server, beside):
        eventually(lambda at=each: at.get(OBJECT)["spec"]["replicas"] == 7, 60, "both go on")
        assert each.get(OBJECT)["metadata"]["uid"] == uid
    eventually(lambda: served in there.git("log", "-1", "--format=%B", REF), 60, "it is recorded there")
    assert bare.git("rev-parse", REF).strip() == old, "and no more where it was"
    assert "the reconciler ended" not in server.output() + beside.output()
    assert condition(server)["status"] == "True"


def _answers_once_it_waits(server: Plane, forge: Forge, eventually: Any) -> None:
    eventually(lambda: "nothing is recorded here, and the status branch is in a repository" in server.output(), 50)
    forge.says = 0


@pytest.mark.slow
def test_two_servers_with_one(plane: Callable[..., Plane], forge: Forge, tmp_path: Path, eventually: Any) -> None:
    first = plane(forge.url, "--poll", "1")
    eventually(forge.head, 30, "the status is there")
    second = plane(forge.url, "--poll", "1", data=tmp_path / "second" / "data")
    [holder] = set(re.findall(r"another server, (\S+), holds this fleet", second.output()))
    forge.replicas(4)
    eventually(lambda: second.get(OBJECT)["spec"]["replicas"] == 4, 60, "what is recorded there is shown")
    uid = first.get(OBJECT)["metadata"]["uid"]
    second.stop()
    third = plane(forge.url, "--poll", "1", "--take-over", holder, data=second.data)
    assert third.get(OBJECT)["metadata"]["uid"] == uid
    eventually(lambda: "holds this fleet" in first.output(), 60, "the first one finds it there, with nothing to push")
