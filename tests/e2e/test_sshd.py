"""A fleet behind OpenSSH's own server: a deploy key, the server's key, nobody at a terminal. See docs/remotes.md."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from support.plane import COMMAND, Clone, Plane, environment
from support.realsshd import RealSshd

FLEET = "apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {name: ssh}\n"
APP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\ndata: {a: %s}\n"
AT = "/clusters/root:a/api/v1/namespaces/default/configmaps/app"


@pytest.fixture
def sshd(tmp_path: Path) -> RealSshd:
    return RealSshd(tmp_path / "sshkeys")


@pytest.fixture
def work(tmp_path: Path) -> Clone:
    """A work tree that pushes to fleet.git beside it."""
    work = Clone(tmp_path / "work")
    work.write("treeplane.yaml", FLEET)
    work.write("workspaces/root/a/workspace.yaml", "")
    work.write("workspaces/root/a/app.yaml", APP % "one")
    work.git("init", "--quiet", "--initial-branch=main")
    work.commit("begin")
    work.git("clone", "--quiet", "--bare", ".", str(tmp_path / "fleet.git"))
    work.git("remote", "add", "origin", str(tmp_path / "fleet.git"))
    return work


def push(work: Clone, said: str) -> None:
    work.write("workspaces/root/a/app.yaml", APP % said)
    work.commit(said)
    work.push("origin", "main")


def options(sshd: RealSshd, known: Path) -> list[str]:
    return ["--git-ssh-key-file", str(sshd.key), "--git-known-hosts-file", str(known), "--poll", "1"]


def test_a_deploy_key_gets_in_and_another_host_does_not(
    sshd: RealSshd, work: Clone, tmp_path: Path, eventually: Any
) -> None:
    known, repository, data = tmp_path / "known_hosts", tmp_path / "fleet.git", tmp_path / "server" / ".treeplane"
    known.write_text(f"{sshd.line()}\n")
    server = Plane(sshd.url(repository), data, *options(sshd, known))
    try:
        with sshd.serving():
            server.start()
            eventually(lambda: "treeplane/status" in Clone(repository).git("branch", "--list"), 60, "it is pushed")
            push(work, "two")
            eventually(lambda: server.get(AT)["data"]["a"] == "two", 60, "the push is seen")
        assert "Accepted publickey" in sshd.log.read_text()
        with sshd.serving("another"):
            push(work, "three")
            eventually(lambda: "its host has another key than the one in" in server.output(), 90, "it is refused")
            assert "Somebody may be in between" in server.output()
            assert sshd.line("another") not in server.output(), "no line to add where somebody may be in between"
            assert server.get(AT)["data"]["a"] == "two"
        with sshd.serving():
            eventually(lambda: server.get(AT)["data"]["a"] == "three", 120, "it goes on")
    finally:
        server.stop()


def test_nobody_is_asked_at_a_terminal(sshd: RealSshd, work: Clone, tmp_path: Path) -> None:
    """ssh asks the terminal itself whether to go on with a host, whatever standard input is."""
    known, folder = tmp_path / "known_hosts", tmp_path / "server"
    known.touch()
    folder.mkdir()
    words = [str(COMMAND), "up", sshd.url(tmp_path / "fleet.git"), "--listen", "127.0.0.1:0", *options(sshd, known)]
    with sshd.serving():
        shown = at_a_terminal(words, folder, "add this line to", sshd.line())
    assert "the key of its host is not known" in shown
    assert re.search(r"which is SHA256:\S{43}", shown)
    assert sshd.line() in re.sub(r"\s+", " ", shown)
    for question in ("continue connecting", "(yes/no", "assphrase", "assword"):
        assert question not in shown
    assert known.read_text() == ""


def at_a_terminal(words: list[str], folder: Path, *until: str) -> str:
    """What a terminal shows of a command, until it has shown all of these, or it ends; nobody types anything."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder)
        os.execvpe(words[0], words, environment())
    shown, deadline = b"", time.monotonic() + 90
    try:
        while not all(each in _flowing(shown) for each in until) and time.monotonic() < deadline:
            if select.select([terminal], [], [], 1)[0]:
                shown += os.read(terminal, 65536)
    except OSError:
        pass  # it has ended
    finally:
        os.kill(process, signal.SIGINT)
        os.waitpid(process, 0)
        os.close(terminal)
    return shown.decode(errors="replace")


def _flowing(shown: bytes) -> str:
    """Without the ends of lines, wherever those are."""
    return re.sub(r"\s+", " ", shown.decode(errors="replace"))
