"""docs/remotes.md, typed as it says: a token, a deploy key and a webhook, against servers that ask for them."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.gitserver import GitServer
from support.plane import COMMAND, Clone, Plane, environment
from support.sshserver import serving_ssh

PAGE = (Path(__file__).parents[2] / "docs" / "remotes.md").read_text()
DEPLOYMENT = "/clusters/root:shop:web/apis/apps/v1/namespaces/default/deployments/web"
TOKEN = "t0ken-that-nobody-else-sees"


def block(having: str) -> str:
    """The commands of the page that have these words."""
    [found] = [text for text in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) if having in text]
    return str(found)


def options(having: str) -> list[str]:
    """Those of the page's `treeplane up` that has these words, without what it serves."""
    found = [line for line in re.findall(r"^treeplane up (.*)$", PAGE, re.MULTILINE) if having in line]
    return shlex.split(found[-1])[1:]


def typed(text: str, folder: Path, given: str = "") -> str:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text], cwd=folder, input=given, env=environment(), capture_output=True,
        text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """The directory in which the server is started."""
    folder = tmp_path / "machine"
    folder.mkdir()
    return folder


@pytest.fixture
def work(example_fleet: Path) -> Clone:
    """The example as a work tree that pushes to `served/fleet.git` beside it."""
    work, served = Clone(example_fleet), example_fleet.parent / "served" / "fleet.git"
    work.git("init", "--quiet", "--initial-branch=main")
    work.commit("begin")
    work.git("clone", "--quiet", "--bare", ".", str(served))
    work.git("-C", str(served), "config", "http.receivepack", "true")
    work.git("remote", "add", "origin", str(served))
    work.git("push", "--quiet", "--set-upstream", "origin", "main")
    return work


@pytest.fixture
def forge(work: Clone, tmp_path: Path) -> Iterator[GitServer]:
    server = GitServer(work.folder.parent / "served", tmp_path / "forgekeys", password=TOKEN)
    yield server
    server.close()


def recorded(work: Clone) -> bool:
    """Whether the server has pushed its status branch."""
    return "treeplane/status" in work.git("ls-remote", "--heads", "origin")


def three_replicas(work: Clone) -> None:
    work.edit("workspaces/root/shop/web/deployment.yaml", "replicas: 2", "replicas: 3")
    work.commit("three replicas")
    work.push()


def test_a_token_and_a_webhook(machine: Path, work: Clone, forge: GitServer, eventually: Any) -> None:
    """The server looks once an hour, so whatever it sees it was told to look for."""
    typed(block("> git-token"), machine, f"{TOKEN}\n")
    typed(block("> webhook-secret"), machine)
    (machine / "forge.crt").write_bytes(forge.ca)
    told = [*options("webhook-secret"), "--git-username", "u", "--git-ca-file", "forge.crt", "--poll", "3600"]
    with Plane(forge.url("fleet.git"), machine / ".treeplane", *told) as server:
        eventually(lambda: recorded(work), 30, "the status branch is pushed")
        three_replicas(work)
        ring = block("webhooks/push").replace("127.0.0.1:6443", f"127.0.0.1:{server.port}")
        assert typed(ring, machine) == "202\n"
        eventually(lambda: server.get(DEPLOYMENT)["spec"]["replicas"] == 3, 30, "the push is seen")
        said = server.output()
        assert TOKEN not in said
        server.stop()
        _drill_and_recover(machine, forge)
        assert (machine / "webhook-secret").read_text().strip() not in said


def _drill_and_recover(machine: Path, forge: GitServer) -> None:
    """As the page has it, with what else this forge asks for in variables."""
    lines = block("treeplane drill").replace("https://git.example.org/team/fleet.git", forge.url("fleet.git"))
    lines = lines.replace("treeplane ", f"{shlex.quote(str(COMMAND))} ")
    said = "export TREEPLANE_GIT_CA_FILE=forge.crt TREEPLANE_GIT_USERNAME=u\n"
    printed = typed(said + lines, machine)
    assert printed.count("recovery gives what is recorded, byte for byte") == 2
    given = f"--git-token-file {machine / 'git-token'} --git-username u --git-ca-file {machine / 'forge.crt'}"
    assert f"treeplane up --data-dir {machine / 'new'} {given}" in printed
    assert TOKEN not in printed
    refused = subprocess.run(
        [str(COMMAND), "drill", forge.url("fleet.git"), "--git-ca-file", "forge.crt"], cwd=machine, env=environment(),
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert refused.returncode == 4, refused.stderr


def test_a_deploy_key(machine: Path, work: Clone, eventually: Any) -> None:
    keys = machine / "forgekeys"
    keys.mkdir()
    printed = typed(block("deploy-key.pub"), machine)
    (keys / "client.pub").write_text(printed)
    (keys / "client").touch()  # the server makes none then
    with serving_ssh(work.folder.parent / "served", keys) as forge:
        (machine / "known_hosts").write_text(f"{forge.line}\n")
        with Plane(
            forge.url("fleet.git"), machine / ".treeplane", *options("--git-ssh-key-file"), "--poll", "1"
        ) as server:
            eventually(lambda: recorded(work), 30, "the status branch is pushed")
            three_replicas(work)
            eventually(lambda: server.get(DEPLOYMENT)["spec"]["replicas"] == 3, 30, "the push is seen")


def test_a_start_with_what_others_may_read_says_what_to_type(machine: Path, forge: GitServer) -> None:
    token = machine / "git-token"
    token.write_text(TOKEN)
    token.chmod(0o644)
    words = ["up", forge.url("fleet.git"), "--data-dir", str(machine / "data"), "--git-token-file", str(token)]
    done = subprocess.run(
        [*Plane("", machine).words()[:1], *words], env=environment(), capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert (done.returncode, f"chmod 600 {token}" in done.stderr) == (2, True)
    assert not forge.asked
