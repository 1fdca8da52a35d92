"""The forms a REPOSITORY takes: a bare repository, a work tree, a URL. (A plain directory: test_hosted.py.)"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from realclusters.processes import free_ports
from support.plane import COMMAND, Clone, Plane, PlaneError, environment
from support.promptness import promptly

WEB = "root:shop:web"
DEPLOYMENT = "workspaces/root/shop/web/deployment.yaml"
STATUS = "refs/heads/treeplane/status"


@pytest.fixture
def work(example_fleet: Path) -> Clone:
    """The example as the work tree of a repository, with one commit on main."""
    work = Clone(example_fleet)
    work.git("init", "--quiet", "--initial-branch=main")
    work.commit("begin")
    return work


@pytest.fixture
def bare(work: Clone, tmp_path: Path) -> Clone:
    """A bare repository that `work` pushes to."""
    work.git("clone", "--quiet", "--bare", ".", str(tmp_path / "fleet.git"))
    work.git("remote", "add", "origin", str(tmp_path / "fleet.git"))
    work.git("push", "--quiet", "--set-upstream", "origin", "main")
    return Clone(tmp_path / "fleet.git")


def test_a_bare_repository(
    plane: Callable[..., Plane], work: Clone, bare: Clone, tmp_path: Path, eventually: Any
) -> None:
    server = plane(bare.folder)
    assert not server.clone_words()  # one clones it where it is
    first = work.git("rev-parse", "HEAD").strip()

    def push(number: int) -> None:
        work.edit(DEPLOYMENT, f"replicas: {number + 2}", f"replicas: {number + 3}")
        work.commit(f"{number + 3} replicas")
        work.push()

    replicas = 3 + promptly(2, push, lambda _: noticed(server, at(work), eventually), "what is pushed is served")
    eventually(lambda: recorded(bare) == at(work), 30, "the status branch is there")
    assert sorted(bare.git("for-each-ref", "--format=%(refname)").split()) == ["refs/heads/main", STATUS]

    # Also by packed refs, several commits at once and a merge.
    work.git("switch", "--quiet", "--create", "topic", first)
    work.edit("workspaces/root/shop/web/config.yaml", "search,wishlist", "search")
    work.commit("fewer features")
    work.git("switch", "--quiet", "main")
    work.git("merge", "--quiet", "--no-edit", "topic")
    work.push()
    bare.git("pack-refs", "--all")
    merged = work.git("rev-parse", "HEAD").strip()
    features = f"/clusters/{WEB}/api/v1/namespaces/default/configmaps/web"
    eventually(lambda: server.get(features)["data"]["FEATURES"] == "search", 30)
    found = server.get(features)["metadata"]["annotations"]["treeplane.dev/source-commit"]
    assert found == merged  # the first-parent commit with which it came
    web = server.get(f"/clusters/{WEB}/apis/apps/v1/namespaces/default/deployments/web")
    assert web["spec"]["replicas"] == replicas


def test_a_work_tree_stays_the_users(plane: Callable[..., Plane], work: Clone, eventually: Any) -> None:
    work.write("notes.txt", "not committed\n")
    work.edit(DEPLOYMENT, "replicas: 2", "replicas: 7")  # neither
    before = work.git("status", "--porcelain"), work.git("rev-parse", "HEAD"), reflog(work)
    server = plane(work.folder)
    begin = before[1].strip()
    eventually(lambda: recorded(work) == begin, 30)
    deployment = f"/clusters/{WEB}/apis/apps/v1/namespaces/default/deployments/web"
    assert server.get(deployment)["spec"]["replicas"] == 2
    assert (work.git("status", "--porcelain"), work.git("rev-parse", "HEAD"), reflog(work)) == before
    assert work.git("branch", "--list", "treeplane/status").strip() == "treeplane/status"

    # Committing is enough.
    (work.folder / "notes.txt").unlink()

    def commit(number: int) -> None:
        if number:
            work.edit(DEPLOYMENT, f"replicas: {number + 6}", f"replicas: {number + 7}")
        work.commit(f"{number + 7} replicas")

    last = 7 + promptly(2, commit, lambda _: noticed(server, at(work), eventually), "what is committed is served")
    eventually(lambda: recorded(work) == at(work), 30)
    assert work.git("status", "--porcelain") == ""

    # An amended commit is followed as a difference of two trees.
    uid = server.get(deployment)["metadata"]["uid"]
    work.edit(DEPLOYMENT, f"replicas: {last}", "replicas: 5")
    work.git("commit", "--quiet", "--all", "--amend", "--message", "five replicas")
    amended = at(work)
    eventually(lambda: server.get(deployment)["spec"]["replicas"] == 5, 30)
    assert server.get(deployment)["metadata"]["uid"] == uid
    eventually(lambda: recorded(work) == amended, 30)


def test_a_checked_out_status_branch_is_not_moved(plane: Callable[..., Plane], work: Clone, eventually: Any) -> None:
    server = plane(work.folder)
    eventually(lambda: recorded(work), 30)
    server.stop()
    work.git("switch", "--quiet", "treeplane/status")
    at = work.git("rev-parse", "HEAD")
    server.start()
    # A commit on main without touching the work tree, as a fetch or another work tree makes it.
    other = work.folder.parent / "other"
    work.git("worktree", "add", "--quiet", str(other), "main")
    beside = Clone(other)
    beside.edit(DEPLOYMENT, "replicas: 2", "replicas: 3")
    head = beside.commit("three replicas")
    noticed(server, head, eventually)
    eventually(lambda: "treeplane/status is checked out in" in said(server), 30, "it says why it waits")
    assert work.git("rev-parse", "HEAD") == at
    assert work.git("status", "--porcelain") == ""
    work.git("switch", "--quiet", "--detach")
    eventually(lambda: recorded(work) == head, 20, "it goes on when the branch is free")


def test_a_url_is_polled_and_pushed_to(
    plane: Callable[..., Plane], work: Clone, bare: Clone, tmp_path: Path, eventually: Any
) -> None:
    url = f"file://{bare.folder}"
    server = plane(url, "--poll", "2")
    assert not server.clone_words()
    head = work.git("rev-parse", "HEAD").strip()
    eventually(lambda: recorded(bare) == head, 30, "the status branch is pushed")
    work.edit(DEPLOYMENT, "replicas: 2", "replicas: 3")
    head = work.commit("three replicas")
    work.push()
    noticed(server, head, eventually)
    eventually(lambda: recorded(bare) == head, 30)

    # Away for a while: what runs goes on, and it is said.
    away = bare.folder.rename(bare.folder.with_name("away.git"))
    eventually(lambda: f"{url} does not answer" in said(server), 30)
    assert server.request("GET", "/readyz").status == 200
    deployment = f"/clusters/{WEB}/apis/apps/v1/namespaces/default/deployments/web"
    assert server.get(deployment)["spec"]["replicas"] == 3
    away.rename(bare.folder)
    work.edit(DEPLOYMENT, "replicas: 3", "replicas: 4")
    head = work.commit("four replicas")
    work.push()
    noticed(server, head, eventually, 90)

    # A start takes the URL of the last time, and does not need an answer from it to keep things running.
    eventually(lambda: recorded(bare) == head, 30)
    server.stop()
    away = bare.folder.rename(away)
    server.repository = ""
    server.start()
    assert f"{url} does not answer" in server.output()
    west = "/targets/root:infra:locations:eu-west/apis/apps/v1/deployments"
    [running] = [item for item in server.get(west)["items"] if item["metadata"]["name"] == "web"]
    where = f"{west.removesuffix('/deployments')}/namespaces/{running['metadata']['namespace']}/deployments/web"
    assert server.request("DELETE", where).status == 200
    eventually(lambda: server.request("GET", where).status == 200, 30, "what was deleted by hand is back")
    away.rename(bare.folder)
    work.edit(DEPLOYMENT, "replicas: 4", "replicas: 5")
    head = work.commit("five replicas")
    work.push()
    noticed(server, head, eventually, 90)
    eventually(lambda: recorded(bare) == head, 30)


def test_a_fleet_belongs_to_one_branch(
    plane: Callable[..., Plane], work: Clone, bare: Clone, tmp_path: Path, eventually: Any
) -> None:
    server = plane(bare.folder)
    head = work.git("rev-parse", "HEAD").strip()
    eventually(lambda: recorded(bare) == head, 30, "the status branch is there")
    before = {key: item["metadata"]["uid"] for key, item in server.everything().items()}
    server.stop()
    work.git("switch", "--quiet", "--create", "trunk")
    work.edit(DEPLOYMENT, "replicas: 2", "replicas: 3")
    head = work.commit("three replicas")
    work.push("--set-upstream", "origin", "trunk")
    server.arguments = ("--branch", "trunk")
    with pytest.raises(PlaneError, match="this fleet is served from branch main") as refused:
        server.start()
    assert f"up {bare.folder} --data-dir" in str(refused.value)
    assert "--branch main" in str(refused.value)
    assert f"git -C {bare.folder} branch -D main" in str(refused.value)
    bare.git("branch", "-D", "main")
    server.start()
    noticed(server, head, eventually)
    after = {key: item["metadata"]["uid"] for key, item in server.everything().items()}
    # What controllers make of their own accord, a CA in each namespace say, may have come since.
    assert {key: after.get(key) for key in before} == before
    eventually(lambda: "branch: trunk" in bare.git("show", f"{STATUS}:fleet.yaml"), 30, "it is recorded")


def test_what_is_no_repository_is_refused(tmp_path: Path, plane: Callable[..., Plane]) -> None:
    with pytest.raises(Exception, match="does not exist"):
        plane(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(Exception, match="holds no files"):
        plane(tmp_path / "empty")
    shutil.rmtree(tmp_path / "empty")


def noticed(server: Plane, head: str, eventually: Any, seconds: float = 30) -> None:
    """Wait until the Deployment is as `head` has it. A source that did not answer is asked once a minute at least."""

    def served() -> bool:
        web = server.get(f"/clusters/{WEB}/apis/apps/v1/namespaces/default/deployments/web")
        return bool(web["metadata"]["annotations"]["treeplane.dev/source-commit"] == head)

    eventually(served, seconds, "the commit is served")


def at(work: Clone) -> str:
    return work.git("rev-parse", "HEAD").strip()


def recorded(repository: Clone) -> str:
    """The commit that the newest status commit is about; "" without a status branch."""
    form = "--format=%(trailers:key=Source-Commit,valueonly)"
    return repository.git("log", "-1", form, STATUS, check=False).strip()


def reflog(repository: Clone) -> str:
    return repository.git("reflog", "show", "main")


def said(server: Plane) -> str:
    return server.output()


def command_line(pid: str) -> bytes:
    """Nothing where it has ended since it was found, as a git does."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def test_a_password_in_the_url_is_shown_nowhere(tmp_path: Path, eventually: Any) -> None:
    """Not where nothing answers either, which is said on the terminal and in the log."""
    data, said = tmp_path / "data", tmp_path / "said"
    url = f"https://us:hun@ter2@127.0.0.1:{free_ports(1)[0]}/fleet.git"
    command = [str(COMMAND), "up", url, "--data-dir", str(data), "--listen", "127.0.0.1:0", "--workers", "1"]
    with said.open("w") as out, subprocess.Popen(command, env=environment(), stdout=out, stderr=out) as process:
        try:
            eventually(lambda: "does not answer" in said.read_text(), 30)
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            lines = [line for child in children if (line := command_line(child))]
        finally:
            process.terminate()
    assert "serving https://***@127.0.0.1" in said.read_text()
    assert not any(b"ter2" in line for line in lines)
    shown = [path for path in (said, *data.rglob("*")) if path.is_file() and path.name != "source"]
    assert not [path for path in shown if b"ter2" in path.read_bytes()]
    assert (data / "source").stat().st_mode & 0o777 == 0o600
