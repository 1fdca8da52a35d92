"""A server that runs, on a disk that gets full and has room again. See docs/disaster.md.

The data directory is a small file system of its own, which takes root; elsewhere these are skipped.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.plane import COMMAND, Answer, Clone, Connection, Credentials, Plane, PlaneError, environment

FLEET = "apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {name: full}\nspec: {writes: Store}\n"
CONFIGMAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {a: %s}\n"
CONFIGMAPS = "/clusters/root:a/api/v1/namespaces/default/configmaps"
_SIZE = "48m"


class FullPlane(Plane):
    """Its kubeconfig is read once: whoever reads it writes beside it."""

    known: Credentials

    def start(self, seconds: float = 60) -> None:
        super().start(seconds)
        self.known = Credentials.read(self.kubeconfig)

    def ask(self, method: str, path: str, body: Any = None) -> Answer:
        connection = Connection(self.known, 30)
        try:
            return connection.request(method, path, body)
        finally:
            connection.close()

    def fill(self) -> None:
        """To the last block."""
        with (self.data / "filler").open("ab", buffering=0) as file:
            for size in (1 << 16, 512):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(b"x" * size)

    def no_more(self) -> Answer:
        """The answer to the first write for which there is no room."""
        for number in range(50):
            self.fill()
            data = {"metadata": {"name": f"big-{number}"}, "data": {"x": "y" * 400_000}}
            answer = self.ask("POST", CONFIGMAPS, data)
            if answer.status != 201:
                return answer
        raise AssertionError("it never was full")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    data = tmp_path / "server" / ".treeplane"
    data.mkdir(parents=True)
    words = ["mount", "-t", "tmpfs", "-o", f"size={_SIZE},mode=700", "tmpfs", str(data)]
    done = subprocess.run(words, capture_output=True, text=True, check=False) if os.geteuid() == 0 else None
    if done is None or done.returncode != 0:
        pytest.skip("a full disk: only root may mount a file system" if done is None else f"mount: {done.stderr}")
    yield data
    subprocess.run(["umount", str(data)], check=True)


@pytest.fixture
def work(tmp_path: Path) -> Clone:
    work = Clone(tmp_path / "work")
    work.write("treeplane.yaml", FLEET)
    work.write("workspaces/root/a/workspace.yaml", "")
    work.write("workspaces/root/a/app.yaml", CONFIGMAP % ("app", "b"))
    work.git("init", "--quiet", "--initial-branch=main")
    work.commit("begin")
    return work


def said_by_status(server: FullPlane) -> str:
    """Exit code and words of `treeplane status`."""
    words = [str(COMMAND), "status", "--kubeconfig", str(server.kubeconfig)]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, check=False, timeout=60)
    return f"{done.returncode} {done.stdout}"


def goes_on(server: FullPlane, head: str, eventually: Any) -> None:
    """By itself, once there is room."""
    (server.data / "filler").unlink(missing_ok=True)
    eventually(
        lambda: server.ask("POST", CONFIGMAPS, {"metadata": {"name": "after"}}).status in (201, 409), 60, "writes do"
    )
    eventually(lambda: server.ask("GET", f"{CONFIGMAPS}/late").status == 200, 90, "the branch is followed")
    mirror = Clone(server.data / "mirror")
    named = ("log", "-1", "--format=%(trailers:key=Source-Commit,valueonly)", "refs/treeplane/recorded")
    eventually(lambda: mirror.git(*named).strip() == head, 60, "it is recorded")
    eventually(lambda: "nothing is wrong" in said_by_status(server), 60, "nothing is wrong")
    assert server.ask("GET", f"{CONFIGMAPS}/after").status == 200
    assert "Traceback" not in server.output()


def test_a_hosted_repository(disk: Path, work: Clone, tmp_path: Path, eventually: Any) -> None:
    shutil.rmtree(work.folder / ".git")
    with FullPlane(work.folder, disk) as server:
        clone = server.clone(tmp_path / "clone")
        refused = server.no_more()
        assert refused.status == 507
        assert refused.body["message"].startswith("the server's disk is full: nothing was written")
        clone.write("workspaces/root/a/late.yaml", CONFIGMAP % ("late", "z" * 100_000))
        head = clone.commit("late")
        with pytest.raises(PlaneError, match="the server's disk is full"):
            clone.push()
        assert server.ask("GET", f"{CONFIGMAPS}/app").status == 200
        assert server.ask("GET", f"{CONFIGMAPS}/late").status == 404
        assert said_by_status(server).startswith("1 disk")
        (server.data / "filler").unlink()
        assert "is served" in clone.push()
        goes_on(server, head, eventually)
        assert "is started again" not in server.output()


def test_a_repository_elsewhere_goes_on_meanwhile(
    disk: Path, work: Clone, tmp_path: Path, eventually: Callable[..., Any]
) -> None:
    work.git("clone", "--quiet", "--bare", ".", str(tmp_path / "fleet.git"))
    work.git("remote", "add", "origin", str(tmp_path / "fleet.git"))
    with FullPlane(f"file://{tmp_path / 'fleet.git'}", disk, "--poll", "1") as server:
        bare = Clone(tmp_path / "fleet.git")
        eventually(lambda: "treeplane/status" in bare.git("branch", "--list"), 60, "it is recorded")
        assert server.no_more().status == 507
        work.write("workspaces/root/a/late.yaml", CONFIGMAP % ("late", "z" * 100_000))
        head = work.commit("late")
        work.push("origin", "main")
        eventually(lambda: "no space" in server.output().lower() or "no room" in server.output(), 60, "it is told")
        assert server.ask("GET", f"{CONFIGMAPS}/app").status == 200
        assert server.ask("GET", f"{CONFIGMAPS}/late").status == 404
        assert said_by_status(server).startswith("1 disk")
        goes_on(server, head, eventually)
        eventually(lambda: head in bare.git("log", "-1", "--format=%B", "treeplane/status"), 60, "it is pushed")
