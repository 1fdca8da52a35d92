"""Clients of the hosted repository that go away, stop or send too much leave nothing of git behind, with real git."""

import contextlib
import http.client
import os
import signal
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apiserver.endpoints import gitbody, gitprocess, gitservice

SMALL = pytest.mark.parametrize("running", [{"max_push_mib": 1}], indirect=True)


def serving(running: Any) -> list[int]:
    """The server's git processes: their environment names the repository."""
    mark, found = str(running.settings.git_dir).encode(), []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if b"GIT_CONFIG_VALUE_0=" + mark in (process / "environ").read_bytes():
                found.append(int(process.name))
    return found


def left_behind(running: Any) -> list[Path]:
    """What pushes had begun to write."""
    return list(running.settings.git_dir.glob("objects/**/*tmp_*"))


def commands_of(running: Any) -> bytes:
    """How the server's git processes were called."""
    found = b""
    for number in serving(running):
        with contextlib.suppress(OSError):
            found += Path(f"/proc/{number}/cmdline").read_bytes()
    return found


def cloned(running: Any, folder: Path, size: int) -> Path:
    """A clone with so many bytes that do not compress, in a commit that is pushed and in one that is not."""
    assert running.git(folder, "-c", "core.compression=0", "clone", running.repository, "work").returncode == 0
    work = folder / "work"
    running.git(work, "config", "core.compression", "0")
    for name in ("pushed", "kept"):
        (work / name).write_bytes(os.urandom(size))
        running.git(work, "add", name)
        assert running.git(work, "commit", "-qm", name).returncode == 0
        if name == "pushed":
            done = running.git(work, "push", "origin", "HEAD:main")
            assert done.returncode == 0, done.stderr
    return work


@pytest.fixture
def work(running: Any, tmp_path: Path) -> Path:
    return cloned(running, tmp_path, 300_000)


@pytest.fixture
def large(running: Any, tmp_path: Path) -> Path:
    """Larger than what the system holds of a connection."""
    return cloned(running, tmp_path, 20 * 1024 * 1024)


@contextlib.contextmanager
def client(running: Any, folder: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """git as the administrator, in a group of its own."""
    pair = running.keys.admin
    settings = {"sslCAInfo": running.keys.ca, "sslCert": pair.certificate, "sslKey": pair.key}
    pairs = [part for name, path in settings.items() for part in ("-c", f"http.{name}={path}")]
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    process = subprocess.Popen(
        ["git", *pairs, *arguments], cwd=folder, env=environment, stderr=subprocess.DEVNULL, process_group=0
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)


ABORTED = {"clone": ("clone", "URL", "second"), "push": ("push", "URL", "HEAD:refs/heads/side")}


@pytest.mark.parametrize("kind", ABORTED)
def test_a_client_that_is_killed_in_the_middle(
    running: Any, large: Path, tmp_path: Path, eventually: Any, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(gitprocess, "_GRACE_SECONDS", 60)  # a git that is killed takes nothing back
    words = [running.repository if word == "URL" else word for word in ABORTED[kind]]
    with client(running, large if kind == "push" else tmp_path, *words) as process:
        eventually(lambda: len(serving(running)) > 1, 60, "git serves it, with a child")
        os.killpg(process.pid, signal.SIGKILL)
        eventually(lambda: not serving(running), 30, "nothing of git is left")
    assert running.git(large, "ls-remote", running.repository, "refs/heads/side").stdout == ""
    assert left_behind(running) == []


@pytest.mark.parametrize("kind", ABORTED)
def test_a_client_that_stands_still(running: Any, large: Path, tmp_path: Path, eventually: Any, kind: str) -> None:
    words = [running.repository if word == "URL" else word for word in ABORTED[kind]]
    with client(running, large if kind == "push" else tmp_path, *words) as process:
        eventually(lambda: len(serving(running)) > 1, 60, "git serves it, with a child")
        os.killpg(process.pid, signal.SIGSTOP)
        running.hurry(stall_seconds=1.0)
        eventually(lambda: not serving(running), 30, "nothing of git is left")
        os.killpg(process.pid, signal.SIGCONT)
        assert process.wait(30) != 0


def connection(running: Any) -> http.client.HTTPSConnection:
    context = ssl.create_default_context(cafile=running.keys.ca)
    context.load_cert_chain(running.keys.admin.certificate, running.keys.admin.key)
    return http.client.HTTPSConnection("127.0.0.1", running.settings.port, context=context, timeout=30)


def begin(running: Any, length: int, service: str = "receive-pack") -> http.client.HTTPSConnection:
    """A request that announces so many bytes."""
    found = connection(running)
    found.putrequest("POST", f"/git/fleet.git/git-{service}")
    found.putheader("Content-Type", f"application/x-git-{service}-request")
    found.putheader("Content-Length", str(length))
    found.endheaders()
    return found


def push(running: Any, work: Path, branch: str) -> bytes:
    """What git sends to push HEAD as a new branch."""
    head = running.git(work, "rev-parse", "HEAD").stdout.strip()
    line = f"{'0' * 40} {head} refs/heads/{branch}\0 report-status".encode()
    pack = subprocess.run(
        ["git", "pack-objects", "--revs", "--stdout", "-q"],
        cwd=work,
        input=head.encode(),
        capture_output=True,
        check=True,
    ).stdout
    return f"{len(line) + 4:04x}".encode() + line + b"0000" + pack


@pytest.mark.parametrize("part", [0, 2, 100, 200_000])
def test_a_push_whose_body_ends_too_early(running: Any, work: Path, eventually: Any, part: int) -> None:
    body = push(running, work, "early")
    asking = begin(running, len(body))
    asking.send(body[:part])
    if part > 200:
        eventually(lambda: serving(running), 60, "git has begun")
    asking.close()
    eventually(lambda: not serving(running), 30, "nothing of git is left")
    assert running.git(work, "ls-remote", running.repository, "refs/heads/early").stdout == ""


@pytest.mark.parametrize("service", ["receive-pack", "upload-pack"])
def test_a_body_that_stalls(running: Any, work: Path, eventually: Any, service: str) -> None:
    asking = begin(running, 1000, service)
    asking.send(b"00")
    running.hurry(stall_seconds=1.0)
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        asking.getresponse()
    asking.close()
    eventually(lambda: not serving(running), 30)


def test_a_push_that_is_all_here_is_finished(running: Any, work: Path, tmp_path: Path, eventually: Any) -> None:
    hook, go = running.settings.git_dir / "hooks" / "pre-receive", tmp_path / "go"
    hook.write_text(f"#!/bin/sh\nuntil [ -e '{go}' ]; do sleep 0.02; done\n")
    hook.chmod(0o755)
    body = push(running, work, "whole")
    asking = begin(running, len(body))
    asking.send(body)
    eventually(lambda: b"pre-receive" in commands_of(running), 60, "git asks its hook")
    asking.close()
    assert running.git(work, "ls-remote", running.repository, "refs/heads/whole").stdout == ""
    go.touch()
    eventually(lambda: running.git(work, "ls-remote", running.repository, "refs/heads/whole").stdout, 60)
    eventually(lambda: not serving(running), 30)


@SMALL
def test_a_push_that_is_too_large_is_told_so(running: Any, tmp_path: Path, eventually: Any) -> None:
    assert running.git(tmp_path, "clone", running.repository, "work").returncode == 0
    work = tmp_path / "work"
    for size, fits in ((512 * 1024, True), (3 * 1024 * 1024, False), (16 * 1024 * 1024, False)):
        (work / "file").write_bytes(os.urandom(size))
        running.git(work, "add", "file")
        running.git(work, "commit", "-qm", "a file")
        done = running.git(work, "push", "origin", "HEAD:main")
        assert (done.returncode == 0) is fits, done.stderr
        if size == 3 * 1024 * 1024:
            assert "pack exceeds maximum allowed size (1024.00 KiB)" in done.stderr
    eventually(lambda: not serving(running), 30)
    assert left_behind(running) == []


def test_what_is_large_once_it_is_unpacked_is_refused(running: Any, tmp_path: Path) -> None:
    """A blob of 256 MiB that packs into a quarter of one: whoever reads it later has it in memory."""
    assert running.git(tmp_path, "clone", running.repository, "work").returncode == 0
    work = tmp_path / "work"
    with (work / "file").open("wb") as file:
        file.truncate(256 * 1024 * 1024)
    running.git(work, "add", "file")
    running.git(work, "commit", "-qm", "a file")
    done = running.git(work, "push", "origin", "HEAD:main")
    assert done.returncode != 0
    assert "over limit" in done.stderr


def test_what_takes_long_to_unpack_is_refused(
    running: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, eventually: Any
) -> None:
    """Eight blobs of 100 MiB in a pack of one: none is too large, together they take more than a second of CPU."""
    monkeypatch.setattr(gitservice, "_CPU_SECONDS", 1)
    assert running.git(tmp_path, "clone", running.repository, "work").returncode == 0
    work = tmp_path / "work"
    for number in range(8):
        with (work / f"file{number}").open("wb") as file:
            file.truncate(100 * 1024 * 1024 + number)
    running.git(work, "-c", "core.compression=1", "add", ".")
    running.git(work, "commit", "-qm", "files")
    done = running.git(work, "push", "origin", "HEAD:main")
    assert done.returncode != 0
    assert "unpack" in done.stderr
    eventually(lambda: not serving(running), 30)
    # An ordinary push goes through all the same.
    running.git(work, "switch", "-q", "--orphan", "small")
    running.git(work, "commit", "--allow-empty", "-qm", "small")
    assert running.git(work, "push", "origin", "HEAD:main").returncode == 0


def test_too_many_refs_in_one_push_are_refused(running: Any, tmp_path: Path, eventually: Any) -> None:
    assert running.git(tmp_path, "clone", running.repository, "work").returncode == 0
    work = tmp_path / "work"
    running.git(work, "commit", "--allow-empty", "-qm", "one")
    head = running.git(work, "rev-parse", "HEAD").stdout.strip()
    lines = "".join(f"create refs/heads/b{number} {head}\n" for number in range(1001))
    subprocess.run(["git", "update-ref", "--stdin"], cwd=work, input=lines.encode(), check=True)
    done = running.git(work, "push", "origin", "refs/heads/b*:refs/heads/b*")
    assert done.returncode != 0
    assert "1001 refs in one push are too many: push at most 1000 at a time" in done.stderr
    running.git(work, "push", "origin", "HEAD:main")
    assert running.git(work, "ls-remote", running.repository, "refs/heads/b*").stdout == ""


@pytest.mark.parametrize(
    "name", ["refs/heads/a\nb", "refs/heads/../x", "refs/heads/a..b", "refs/heads/\x7f", "../x", "HEAD",
             "refs/heads/a b", "refs/heads/a.lock", "refs/heads/" + "x" * 300],
)  # fmt: skip
def test_names_that_git_does_not_know_are_refused(running: Any, work: Path, name: str) -> None:
    head = running.git(work, "rev-parse", "HEAD").stdout.strip()
    body = push(running, work, "BRANCH")
    old = f"{'0' * 40} {head} refs/heads/BRANCH\0 report-status".encode()
    new = f"{'0' * 40} {head} {name}\0 report-status".encode()
    asking = begin(running, len(body) - len(old) + len(new))
    asking.send(f"{len(new) + 4:04x}".encode() + new + body[4 + len(old) :])
    answer = asking.getresponse()
    said = answer.read()
    asking.close()
    assert b"\nng " in b"\n" + said.replace(b"00", b"\n") or b"ng " in said
    before = running.git(work, "ls-remote", running.repository).stdout
    assert [line.split("\t")[1] for line in before.splitlines()] == ["HEAD", "refs/heads/main"]


def test_a_list_of_refs_without_an_end_is_cut_short(running: Any) -> None:
    line = f"{'0' * 40} {'1' * 40} refs/heads/x\0 report-status".encode()
    one = f"{len(line) + 4:04x}".encode() + line
    asking = begin(running, 100 * gitbody._LIST)
    with pytest.raises((ConnectionError, AssertionError)):
        for _ in range(100 * gitbody._LIST // len(one)):
            asking.send(one)
        asking.getresponse()
        raise AssertionError("it was read to its end")
    asking.close()
    assert serving(running) == []
