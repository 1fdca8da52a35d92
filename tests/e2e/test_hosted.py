"""The repository that the server hosts: what a push may do, who may push, and the directory it came from."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from support.plane import Clone, Plane, PlaneError, clone

EXAMPLE = Path(__file__).parents[2] / "examples" / "fleet-repo"
DEPLOYMENT = "workspaces/root/shop/web/deployment.yaml"
READERS = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: git}
rules:
  - {nonResourceURLs: ["/"], verbs: [access]}
  - {nonResourceURLs: [/git/fleet.git], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: git}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: git}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: reader}]
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """The example, for tests that leave it as they need it."""
    with Plane(EXAMPLE, tmp_path_factory.mktemp("hosted") / "server" / "data") as server:
        yield server


def test_what_a_push_may_not_do(server: Plane, tmp_path: Path) -> None:
    work = server.clone(tmp_path / "fleet")
    with pytest.raises(PlaneError, match="refs/heads/treeplane/status is written by the server alone"):
        work.push("--force", "origin", "HEAD:refs/heads/treeplane/status")
    with pytest.raises(PlaneError, match="written by the server alone"):
        work.push("origin", ":refs/heads/treeplane/status")
    with pytest.raises(PlaneError, match="deletion of the current branch prohibited"):
        work.push("origin", ":refs/heads/main")

    work.edit(DEPLOYMENT, "replicas: 2", "replicas: 3")
    head = work.commit("three replicas")
    work.push()
    work.git("commit", "--quiet", "--amend", "--message", "another history")
    with pytest.raises(PlaneError, match="cannot be rewritten: fetch, rebase on it, and push again"):
        work.push("--force")
    assert work.git("ls-remote", "origin", "refs/heads/main").split()[0] == head

    # Any other branch is the user's.
    work.push("origin", "HEAD:refs/heads/proposal")
    work.push("--force", "origin", "HEAD~1:refs/heads/proposal")
    work.push("origin", ":refs/heads/proposal")


def test_what_is_the_servers_follows_the_name_that_the_fleet_gives_it(
    plane: Callable[..., Plane], example_fleet: Path, tmp_path: Path, eventually: Any
) -> None:
    config = example_fleet / "treeplane.yaml"
    config.write_text(config.read_text().replace("treeplane/status", "ops/state"))
    server = plane(example_fleet)
    work = server.clone(tmp_path / "fleet")
    eventually(lambda: "refs/heads/ops/state" in work.git("ls-remote", "origin"), 60)
    refs = ("ops/state", "ops", "ops/state/x", "OPS/State", "treeplane/status", "treeplane")
    for ref in (*(f"refs/heads/{ref}" for ref in refs), "refs/treeplane/served", "refs/remotes/origin/ops/state"):
        with pytest.raises(PlaneError, match=r"written by the server alone|nothing else|hidden ref"):
            work.push("--force", "origin", f"HEAD:{ref}")


def test_a_clone_carries_what_it_needs(server: Plane, tmp_path: Path) -> None:
    """By path, on one unwrapped line, with no secret on screen; without the credential there is no clone."""
    words = server.clone_words()
    assert words[-1] == "fleet"
    settings = dict(word.split("=", 1) for before, word in pairwise(words) if before == "--config")
    for name in ("http.sslCAInfo", "http.sslCert", "http.sslKey"):
        assert Path(settings[name]).is_file()
    assert (settings["user.name"], settings["user.email"]) == ("Treeplane admin", "admin@localhost")
    line = next(line for line in server.output().splitlines() if "git clone" in line)
    assert shlex.split(line) == words
    assert "PRIVATE KEY" not in server.output()
    work = server.clone(tmp_path / "fleet")
    assert "Treeplane admin" in (work.folder / ".git" / "config").read_text()
    assert work.git("rev-parse", "--abbrev-ref", "HEAD") == "main\n"
    url = words[-2]
    ca = f"http.sslCAInfo={server.data / 'keys' / 'ca.crt'}"
    with pytest.raises(PlaneError, match=r"Authentication failed|could not read Username|401"):
        clone(["git", "-c", "core.askPass=true", "clone", "--config", ca, url, ""], tmp_path / "anonymous")


def test_reading_and_pushing_are_two_rights(
    plane: Callable[..., Plane], example_fleet: Path, tmp_path: Path, eventually: Any
) -> None:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text('reader-token,reader,1,"readers"\nnobody-token,nobody,2\n')
    (example_fleet / "workspaces" / "root" / "git.yaml").write_text(READERS)
    server = plane(example_fleet, "--token-auth-file", str(tokens))
    ca = f"http.sslCAInfo={server.data / 'keys' / 'ca.crt'}"
    url = server.clone_words()[-2].removeprefix("https://")

    with pytest.raises(PlaneError, match="403"):
        clone(["git", "clone", "--config", ca, f"https://any:nobody-token@{url}", ""], tmp_path / "nobody")
    work = clone(["git", "clone", "--config", ca, f"https://any:reader-token@{url}", ""], tmp_path / "reader")
    work.edit(DEPLOYMENT, "replicas: 2", "replicas: 3")
    work.commit("three replicas")
    with pytest.raises(PlaneError, match="403"):
        work.push()


def test_a_directory_that_moved_on_is_not_served_and_that_is_said(
    plane: Callable[..., Plane], example_fleet: Path, tmp_path: Path, eventually: Any
) -> None:
    server = plane(example_fleet)
    assert f"created {server.data}/repo/fleet.git from {example_fleet}: it is the truth from now on" in server.output()
    server.stop()

    manifest = example_fleet / DEPLOYMENT
    manifest.write_text(manifest.read_text().replace("replicas: 2", "replicas: 9"))
    server.start()
    assert f"{example_fleet}, which it was made of, is only a copy and differs from it" in server.output()
    web = "/clusters/root:shop:web/apis/apps/v1/namespaces/default/deployments/web"
    assert server.get(web)["spec"]["replicas"] == 2

    # Once the same is pushed, there is nothing to warn of.
    work = server.clone(tmp_path / "fleet")
    work.edit(DEPLOYMENT, "replicas: 2", "replicas: 9")
    work.commit("nine replicas")
    work.push()
    eventually(lambda: server.get(web)["spec"]["replicas"] == 9, 30)
    server.stop()
    server.start()
    assert "has changed since" not in server.output()


def test_the_directory_is_left_as_it_was(plane: Callable[..., Plane], example_fleet: Path) -> None:
    """A directory inside a repository is no repository: nothing of the one around it is read or written."""
    outer = Clone(example_fleet.parent)
    outer.git("init", "--quiet")
    before = {path: path.stat().st_mtime_ns for path in example_fleet.rglob("*")}
    server = plane(example_fleet)
    assert server.clone_words()
    assert {path: path.stat().st_mtime_ns for path in example_fleet.rglob("*")} == before
    assert outer.git("for-each-ref") == ""
    assert json.loads(server.kubectl("get", "workspaces", "-o", "json"))["items"]
