"""A source behind a network that swallows: every call ends in its time, with all it started, and blocks no other."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.swallowing import Proxy, git_daemon, swallowing

from reconciler.repository.command import Patience, git
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.mirror import Heads, Mirror
from reconciler.repository.objects import Repository
from reconciler.repository.remote import RemoteSettings
from reconciler.repository.write import commit_tree, edit_tree

Git = Callable[..., str]
QUICK = RemoteSettings(
    ask=Patience(total=0.6), fetch=Patience(total=30, begin=2, quiet=2), push=Patience(total=30, begin=2, quiet=2)
)
"""For what is swallowed: what is to be answered may take longer on a machine that has much else to do."""
PATIENT = RemoteSettings(ask=Patience(total=60), fetch=Patience(total=60), push=Patience(total=60))
GIVEN_UP = "does not answer: no answer within .* seconds, so it was given up"


@pytest.fixture
def far(tmp_path: Path, clone: Path, git: Git) -> Iterator[Proxy]:
    """A proxy in front of a repository `fleet.git`, which the clone pushes to by path."""
    git(tmp_path, "clone", "-q", "--bare", str(clone), "fleet.git")
    git(clone, "remote", "add", "origin", str(tmp_path / "fleet.git"))
    with git_daemon(tmp_path) as port, swallowing(port) as proxy:
        yield proxy


def opened(tmp_path: Path, proxy: Proxy, scheme: str = "git", settings: RemoteSettings = PATIENT) -> Mirror:
    url = f"{scheme}://127.0.0.1:{proxy.port}/fleet.git"
    return Mirror(tmp_path / "data", url, "main", "treeplane/status", settings)


def commit(mirror: Mirror, text: str) -> str:
    tree = edit_tree(mirror.repository, None, {"a": text.encode()})
    return commit_tree(mirror.repository, tree, [], text, 1)


@pytest.mark.parametrize("scheme", ["git", "http", "https", "ssh"])
def test_a_call_that_is_swallowed_ends_with_all_that_it_started(
    tmp_path: Path, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with swallowing() as proxy:
        mirror = opened(tmp_path, proxy, scheme, QUICK)
        for call in (mirror.refresh, lambda: mirror.push_status(commit(mirror, "one"), None)):
            began = time.monotonic()
            with pytest.raises(RepositoryUnreadable, match=GIVEN_UP):
                call()
            assert time.monotonic() - began < 20
        assert not processes_that_name(str(proxy.port))


def test_what_was_swallowed_begins_anew_when_the_source_is_back(
    tmp_path: Path, far: Proxy, clone: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = opened(tmp_path, far)
    first = mirror.refresh()
    far.swallow()
    with monkeypatch.context() as patched:
        patched.setattr(mirror._remote, "_settings", QUICK)
        with pytest.raises(RepositoryUnreadable, match=GIVEN_UP):
            mirror.refresh()
    assert mirror.last_seen() == first
    far.release()
    git(clone, "commit", "-q", "--allow-empty", "-m", "second")
    git(clone, "push", "-q", "origin", "main")
    assert mirror.refresh().desired == git(clone, "rev-parse", "main")


def test_a_push_under_way_blocks_neither_looks_nor_other_pushes(
    tmp_path: Path, far: Proxy, clone: Path, git: Git, eventually: Callable[..., object]
) -> None:
    mirror = opened(tmp_path, far)
    head = mirror.refresh().desired
    assert head is not None
    one, failed = commit(mirror, "one"), list[Exception]()

    def push() -> None:
        try:
            mirror.push_status(one, None)
        except RepositoryUnreadable as error:
            failed.append(error)

    far.swallow()
    before = far.taken
    pushing = threading.Thread(target=push)
    pushing.start()
    eventually(lambda: far.taken > before, 60, what="the push is under way")
    far.release()
    assert mirror.refresh() == Heads(head, None)
    desired = commit_tree(mirror.repository, mirror.repository.commit(head).tree, [head], "two", 2)
    mirror.push_desired(desired, head)
    assert mirror.last_seen().desired == desired
    assert pushing.is_alive(), "the first push hangs all this time"
    far.drop()
    pushing.join(60)
    assert failed
    mirror.push_status(one, None)
    assert mirror.refresh() == Heads(desired, one)


def test_a_look_that_a_push_overtook_is_taken_again(
    tmp_path: Path, far: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it saw was the past: taken for news, it would take the pushed commit back."""
    mirror = opened(tmp_path, far)
    head = mirror.refresh().desired
    assert head is not None
    newer = commit_tree(mirror.repository, mirror.repository.commit(head).tree, [head], "two", 2)
    remote = mirror._remote
    assert remote is not None
    fetched, calls = remote._fetched, []

    def overtaken(branches: list[str]) -> list[str | None]:
        found = fetched(branches)
        calls.append(found)
        if len(calls) == 1:
            mirror.push_desired(newer, head)
        return found

    monkeypatch.setattr(remote, "_fetched", overtaken)
    assert mirror.refresh().desired == newer
    assert [found[0] for found in calls] == [head, newer]


def test_nobody_is_waited_for_at_the_end(tmp_path: Path) -> None:
    with swallowing() as proxy:
        mirror = Mirror(tmp_path / "data", f"git://127.0.0.1:{proxy.port}/x.git", "main", "treeplane/status")
        threading.Timer(0.2, mirror.close, [0.2]).start()
        began = time.monotonic()
        with pytest.raises(RepositoryUnreadable):
            mirror.refresh()
        assert time.monotonic() - began < 15, "else it is waited for twenty seconds"


def test_nothing_is_asked(tmp_path: Path, bare: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither on a terminal nor by a program that would open a window."""
    asked = tmp_path / "asked"
    program = tmp_path / "askpass"
    program.write_text(f"#!/bin/sh\ntouch {asked}\necho secret\n")
    program.chmod(0o755)
    for name in ("GIT_ASKPASS", "SSH_ASKPASS"):
        monkeypatch.setenv(name, str(program))
    settings = {"core.askPass": str(program)}
    answer = git(bare.path, "credential", "fill", given=b"protocol=https\nhost=example.com\n\n", settings=settings)
    assert answer.code != 0
    assert not asked.exists()


@pytest.mark.parametrize("own", ["", "GIT_SSH_COMMAND", "GIT_SSH", "core.sshCommand"])
def test_ssh_has_deadlines_where_the_user_has_not_said_how_to_run_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str
) -> None:
    for folder in ("bin", "own"):
        program = tmp_path / folder / "ssh"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\necho "$0 $*" >> {tmp_path}/called\n')
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    for name in ("GIT_SSH_COMMAND", "GIT_SSH"):
        monkeypatch.delenv(name, raising=False)
    if own == "core.sshCommand":
        configuration = Path(os.environ["GIT_CONFIG_GLOBAL"])
        configuration.write_text(f"{configuration.read_text()}[core]\n\tsshCommand = {tmp_path}/own/ssh\n")
    elif own:
        monkeypatch.setenv(own, f"{tmp_path}/own/ssh")
    mirror = Mirror(tmp_path / "data", "git@example.com:fleet.git", "main", "treeplane/status")
    with pytest.raises(RepositoryUnreadable):
        mirror.refresh()
    called = (tmp_path / "called").read_text()
    assert f"{tmp_path}/{'own' if own else 'bin'}/ssh " in called
    assert ("BatchMode=yes" in called, "ConnectTimeout=10" in called, "ServerAliveInterval=10" in called) == (
        not own,
    ) * 3


def test_a_total_follows_what_was_moved() -> None:
    patience = Patience(total=10, begin=5, quiet=3, rate=100)
    assert not patience.over(4, None, 0)
    assert patience.over(6, None, 0), "no sign of life at all"
    assert not patience.over(9, 8, 0)
    assert patience.over(9, 5, 0), "quiet"
    assert patience.over(11, 10, 50), "slow from beginning to end"
    assert not patience.over(11, 10, 500)


def test_what_git_says_it_moved_counts(tmp_path: Path, bare: Repository) -> None:
    """A peer that sends on and on, but too slowly, is given up all the same."""
    said = "printf 'Receiving objects: 1%% (1/9), %s KiB | 1 KiB/s\\r' $n >&2"
    slow = f"n=0; while :; do n=$((n + 1)); {said}; sleep 0.1; done"
    settings = {"alias.slow": f"!{slow}"}
    with pytest.raises(RepositoryUnreadable, match="given up"):
        git(bare.path, "slow", settings=settings, patience=Patience(total=0.5, rate=1e9))
    with pytest.raises(RepositoryUnreadable, match="given up"):
        git(bare.path, "slow", settings=settings, patience=Enough(total=60))


class Enough(Patience):
    """Gives up once five of the KiB that were said have been counted, and not before."""

    def over(self, now: float, heard: float | None, moved: float) -> bool:
        assert now < self.total
        return moved >= 5 * 1024


def test_a_connection_that_ssh_keeps_is_not_waited_for(bare: Repository) -> None:
    """ControlPersist leaves a process behind that holds git's pipes."""
    began = time.monotonic()
    answer = git(bare.path, "once", settings={"alias.once": "!echo done; sleep 30 &"}, patience=Patience(total=20))
    assert answer.output == "done\n"
    assert time.monotonic() - began < 15


def processes_that_name(text: str) -> list[str]:
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = file.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in words and "git" in words and "pytest" not in words:
            found.append(words)
    return found
