"""Each push is written down: real git, over TLS, as several users."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from apiserver.auth.pki import ensure_keys, issue_client
from apiserver.endpoints.githooks import install_hooks
from apiserver.endpoints.pushhooks import HELD_VERDICT, VERDICTS
from apiserver.launch import listen, spawn
from apiserver.registry.tree import FleetRecord, WorkspaceRecord, placed, put_fleet, put_workspace
from apiserver.settings import ServerSettings
from apiserver.stores import open_main_store
from reconciler.commands.pushlisting import ListedPush, pushes

NONE = "0" * 40


def commit(running: Any, folder: Path, text: str) -> str:
    (folder / "a.txt").write_text(text)
    running.git(folder, "add", "a.txt")
    assert running.git(folder, "commit", "-qm", "write").returncode == 0
    return str(running.git(folder, "rev-parse", "HEAD").stdout.strip())


@pytest.fixture
def clone(tmp_path: Path, running: Any) -> Path:
    assert running.git(tmp_path, "clone", "-q", running.repository, "fleet").returncode == 0
    return tmp_path / "fleet"


@pytest.fixture
def listed(running: Any) -> Callable[[], list[ListedPush]]:
    """The oldest first."""
    return lambda: [*reversed(pushes(running.settings.data_dir).listed)]


Listed = Callable[[], list[ListedPush]]


def test_a_push_that_is_taken(running: Any, clone: Path, listed: Listed) -> None:
    new = commit(running, clone, "1")
    header = "http.extraHeader=X-Request-Id: ci-7"
    done = running.git(clone, "-c", header, "push", "origin", "HEAD:main", "HEAD:side")
    assert done.returncode == 0, done.stderr
    (found,) = listed()
    assert (found.user, found.groups) == ("kcp-admin", ("system:kcp:admin", "system:authenticated"))
    assert (found.address, found.request, found.result) == ("127.0.0.1", "ci-7", "accepted")
    assert [(each.ref, each.old, each.new) for each in found.refs] == [
        ("refs/heads/main", NONE, new), ("refs/heads/side", NONE, new),
    ]  # fmt: skip
    assert (running.settings.data_dir / "pushes.log").stat().st_mode & 0o777 == 0o600


def test_it_is_written_down_before_the_pusher_hears_of_it(running: Any, clone: Path, listed: Listed) -> None:
    """The hook that runs last holds the push: its refs are moved, and the client is told nothing yet."""
    commit(running, clone, "1")
    hook = running.settings.git_dir / "hooks" / "post-receive"
    go = clone.parent / "go"
    os.mkfifo(go)
    hook.write_text(f"#!/bin/sh\necho seen\nread x <'{go}'\n")
    done: list[Any] = []
    trace = {"GIT_TRACE_PACKET": str(clone.parent / "trace")}
    pushing = threading.Thread(
        target=lambda: done.append(running.git(clone, "push", "origin", "HEAD:main", environment=trace))
    )
    pushing.start()
    with go.open("w") as word:  # opens once the hook runs
        (found,) = listed()
        assert found.result == "unknown"
        assert "under way" in found.words
        assert "unpack ok" not in (clone.parent / "trace").read_text()
        word.write("go\n")
    pushing.join(60)
    assert done[0].returncode == 0, done[0].stderr
    (found,) = listed()
    assert (found.result, found.words) == ("accepted", "seen")
    assert "unpack ok" in (clone.parent / "trace").read_text()


def test_a_push_that_is_refused_says_why(running: Any, clone: Path, listed: Listed) -> None:
    commit(running, clone, "1")
    running.git(clone, "push", "origin", "HEAD:main")
    running.git(clone, "commit", "--amend", "-qm", "other")
    done = running.git(clone, "push", "--force", "origin", "HEAD:main", "HEAD:side")
    assert done.returncode != 0
    found = listed()[1]
    assert [(each.ref, each.result, each.reason) for each in found.refs] == [
        ("refs/heads/main", "refused", "hook declined"), ("refs/heads/side", "accepted", ""),
    ]  # fmt: skip
    assert found.result == "mixed"
    assert "treeplane: refs/heads/main is the served branch and cannot be rewritten" in found.words
    for line in found.words.splitlines():
        assert line in done.stderr, "in the words that the pusher was shown"


def test_a_push_that_is_held(running: Any, clone: Path, listed: Listed) -> None:
    """As the reconciler says of its commit, in a file that stands in for it here."""
    new = commit(running, clone, "1")
    verdict = running.settings.git_dir / VERDICTS / new
    verdict.parent.mkdir(parents=True)
    verdict.write_text(f"{HELD_VERDICT}\ncommit {new:.10} is held\n")
    done = running.git(clone, "push", "origin", "HEAD:main", "HEAD:side")
    assert "remote: treeplane: commit" in done.stderr
    assert HELD_VERDICT not in done.stderr.replace("is held", "")
    (found,) = listed()
    assert [(each.ref, each.result) for each in found.refs] == [
        ("refs/heads/main", "held"), ("refs/heads/side", "accepted"),
    ]  # fmt: skip
    assert found.words == f"treeplane: commit {new:.10} is held"


def test_who_is_not_let_in(running: Any, clone: Path, listed: Listed) -> None:
    commit(running, clone, "1")
    running.allow("bob", "get")
    assert running.git(clone, "fetch", "origin", user="bob").returncode == 0  # is no push
    assert running.git(clone, "push", "origin", "HEAD:main", user="bob").returncode != 0
    wrong = running.repository.replace("https://", "https://bob:s3cret-token@")
    assert running.git(clone, "push", wrong, "HEAD:main", user="").returncode != 0
    assert running.git(clone, "push", running.repository, "HEAD:main", user="").returncode != 0  # names nobody
    bobs, nobodys = listed()
    assert (bobs.user, bobs.result, bobs.refs) == ("bob", "refused", ())
    assert 'User "bob" cannot update path "/git/fleet.git"' in bobs.words
    assert (nobodys.user, nobodys.address, nobodys.words) == ("", "127.0.0.1", "Unauthorized")
    written = (running.settings.data_dir / "pushes-refused.log").read_text()
    assert "s3cret" not in written
    assert not (running.settings.data_dir / "pushes.log").exists()


def test_where_it_cannot_be_written_down_nothing_is_taken(running: Any, clone: Path) -> None:
    commit(running, clone, "1")
    (running.settings.data_dir / "pushes.log").mkdir()
    done = running.git(clone, "push", "origin", "HEAD:main")
    assert done.returncode != 0
    assert "treeplane: refused, since it cannot be written down who pushes" in done.stderr
    assert running.git(clone, "ls-remote", "origin").stdout == ""


@pytest.mark.parametrize("capabilities", ["", "report-status", "side-band-64k"])
def test_a_client_that_asks_for_no_report_hides_nothing(
    running: Any, clone: Path, listed: Listed, capabilities: str
) -> None:
    new = commit(running, clone, "1")
    running.git(clone, "push", "origin", "HEAD:side")
    line = f"{NONE} {new} refs/heads/main\0{capabilities}".encode()
    pack = subprocess.run(["git", "pack-objects", "--stdout", "-q"], input=b"", capture_output=True, check=True).stdout
    body = b"%04x" % (len(line) + 4) + line + b"0000" + pack
    context = ssl.create_default_context(cafile=running.keys.ca)
    pair = running.keys.pair("admin")
    context.load_cert_chain(pair.certificate, pair.key)
    with (
        socket.create_connection(("127.0.0.1", running.settings.port)) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as client,
    ):
        client.sendall(
            b"POST /git/fleet.git/git-receive-pack HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
            b"content-type: application/x-git-receive-pack-request\r\ncontent-length: %d\r\n\r\n" % len(body) + body
        )
        while client.recv(65536):
            pass
    found = listed()[1]
    assert [(each.ref, each.result) for each in found.refs] == [("refs/heads/main", "accepted")]


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[tuple[ServerSettings, socket.socket]]:
    """For a worker that is a process of its own."""
    data, git_dir = tmp_path / "data", tmp_path / "fleet.git"
    keys = ensure_keys(data / "keys")
    issue_client(keys.directory, "bob", "bob", ["system:masters"])
    subprocess.run(["git", "init", "-q", "--bare", str(git_dir)], check=True)
    install_hooks(git_dir, "main", "treeplane/status")
    with listen("127.0.0.1", 0) as listener:
        settings = ServerSettings(data, keys.directory, port=listener.getsockname()[1], git_dir=git_dir)
        store = open_main_store(settings)
        root = WorkspaceRecord("root", "root", "")
        store.write(put_workspace(root), placed(root), put_fleet(FleetRecord(loaded=True))).result(10)
        store.close()
        yield settings, listener


def test_a_server_that_is_killed_leaves_the_beginning(
    alone: tuple[ServerSettings, socket.socket], git: Any, tmp_path: Path
) -> None:
    """With SIGKILL, after the ref has moved and before its end is written."""
    settings, listener = alone
    keys = ensure_keys(settings.keys_dir)
    pair, go = keys.pair("bob"), tmp_path / "go"
    os.mkfifo(go)
    (settings.git_dir / "hooks" / "post-receive").write_text(f"#!/bin/sh\nread x <'{go}'\n")  # type: ignore[operator]
    tls = {"http.sslCAInfo": str(keys.ca), "http.sslCert": str(pair.certificate), "http.sslKey": str(pair.key)}
    git(tmp_path, "init", "-q", "fleet")
    fleet = tmp_path / "fleet"
    git(fleet, "commit", "--allow-empty", "-qm", "one")
    new = git(fleet, "rev-parse", "HEAD").stdout.strip()
    worker = spawn(settings, listener)
    done: list[Any] = []
    url = f"{settings.url}/git/fleet.git"
    pushing = threading.Thread(target=lambda: done.append(git(fleet, "push", url, "HEAD:main", settings=tls)))
    pushing.start()
    try:
        with go.open("w"):
            listener.close()  # the worker has its own; where one was left, git would try again, and wait for ever
            worker.send_signal(signal.SIGKILL)
            worker.wait(30)
            # Neither git nor its hook, which go on, has the port.
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", settings.port), 10)
            pushing.join(60)
    finally:
        worker.kill()
        worker.wait(30)
        if worker.stdin:
            worker.stdin.close()
    assert done[0].returncode != 0, "it was not told that its push is made"
    assert git(tmp_path, "-C", str(settings.git_dir), "rev-parse", "main").stdout.strip() == new
    (found,) = pushes(settings.data_dir).listed
    assert (found.user, found.result) == ("bob", "unknown")
    assert [(each.ref, each.new) for each in found.refs] == [("refs/heads/main", new)]
    (line,) = (settings.data_dir / "pushes.log").read_text().splitlines()
    assert json.loads(line)["push"]
