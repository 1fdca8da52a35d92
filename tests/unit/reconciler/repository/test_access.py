"""A URL that is reached with what the server was told: tokens, CAs, proxies, keys; against real servers, and in nothing
that anybody else may read."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.connectproxy import connect_proxy
from support.gitserver import GitAsked, GitServer
from support.sshserver import SshServer, serving_ssh

from reconciler.repository.access import Reaching, RemoteAccess
from reconciler.repository.errors import PushRejected, RepositoryUnreadable
from reconciler.repository.mirror import Mirror
from reconciler.repository.write import commit_tree, edit_tree

Git = Callable[..., str]
TOKEN = "t0ken-that-nobody-else-sees"


@pytest.fixture(autouse=True)
def no_ca_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nor its proxies, agents and known hosts."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name in ("GIT_SSL_CAINFO", "SSH_AUTH_SOCK", "GIT_SSH_COMMAND", "GIT_SSH"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def folder(tmp_path: Path, clone: Path, git: Git) -> Path:
    """With `fleet.git`."""
    folder = tmp_path / "served"
    folder.mkdir()
    git(folder, "clone", "-q", "--bare", str(clone), "fleet.git")
    git(folder / "fleet.git", "config", "http.receivepack", "true")
    return folder


@pytest.fixture
def server(folder: Path, tmp_path: Path) -> Iterator[GitServer]:
    server = GitServer(folder, tmp_path / "keys", password=TOKEN)
    yield server
    server.close()


@pytest.fixture
def ca(server: GitServer, tmp_path: Path) -> Path:
    return written(tmp_path / "ca.crt", server.ca.decode())


@pytest.fixture
def token(tmp_path: Path) -> Path:
    return written(tmp_path / "token", f"{TOKEN}\n")


def written(file: Path, text: str) -> Path:
    new = file.with_suffix(".new")
    new.write_text(text)
    new.chmod(0o600)
    return new.rename(file)


def opened(tmp_path: Path, url: str, name: str = "data", **access: object) -> Mirror:
    return Mirror(tmp_path / name, url, "main", "treeplane/status", access=RemoteAccess(**access))  # type: ignore[arg-type]


def a_status(mirror: Mirror) -> str:
    tree = edit_tree(mirror.repository, None, {"a": b"one"})
    return commit_tree(mirror.repository, tree, [], "one", 1)


# -- https


def test_a_token_reads_and_writes_and_is_nowhere_else(
    tmp_path: Path, server: GitServer, ca: Path, token: Path, clone: Path, git: Git
) -> None:
    seen: list[bytes] = []

    def look(_: GitAsked) -> bool:
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                seen.append((process / "cmdline").read_bytes())
        return False

    server.spoil = look
    mirror = opened(tmp_path, server.url("fleet.git"), git_token_file=token, git_username="u", git_ca_file=ca)
    assert mirror.refresh().desired == git(clone, "rev-parse", "HEAD")
    mirror.push_status(a_status(mirror), None)
    assert mirror.refresh().status is not None
    assert any(b"remote-https" in words for words in seen)
    assert not any(TOKEN.encode() in words for words in seen)
    files = [each for each in (tmp_path / "data").rglob("*") if each.is_file()]
    assert not any(TOKEN.encode() in each.read_bytes() for each in files)


def test_a_token_that_is_replaced_counts_from_the_next_look(
    tmp_path: Path, server: GitServer, ca: Path, token: Path
) -> None:
    mirror = opened(tmp_path, server.url("fleet.git"), git_token_file=token, git_username="u", git_ca_file=ca)
    mirror.refresh()
    server.password = "another-token"
    with pytest.raises(RepositoryUnreadable, match="--git-token-file") as refused:
        mirror.refresh()
    assert TOKEN not in str(refused.value)
    written(token, "another-token")
    assert mirror.refresh().desired


@pytest.mark.parametrize("mode", [0o644, 0o640])
def test_a_token_that_others_may_read_is_not_used(
    tmp_path: Path, server: GitServer, ca: Path, token: Path, mode: int
) -> None:
    mirror = opened(tmp_path, server.url("fleet.git"), git_token_file=token, git_username="u", git_ca_file=ca)
    token.chmod(mode)
    with pytest.raises(RepositoryUnreadable) as refused:
        mirror.refresh()
    assert refused.value.hint == f"chmod 600 {token}"
    assert not server.asked


def test_a_token_goes_to_no_other_server(
    tmp_path: Path, server: GitServer, ca: Path, token: Path, folder: Path
) -> None:
    """One that the first leads to, and that asks for a password."""
    other = GitServer(folder, tmp_path / "keys", password="its-own")
    try:

        def elsewhere(asked: GitAsked) -> bool:
            asked.reply(b"", 302, Location=f"{other.url(asked.repository)}/info/refs?service=git-upload-pack")
            return True

        server.spoil = elsewhere
        mirror = opened(tmp_path, server.url("fleet.git"), git_token_file=token, git_username="u", git_ca_file=ca)
        with pytest.raises(RepositoryUnreadable):
            mirror.refresh()
        assert other.asked
        assert not any("Authorization" in asked.headers for asked in other.asked)
    finally:
        other.close()


def test_a_server_for_which_no_known_ca_vouches_is_refused(tmp_path: Path, server: GitServer, token: Path) -> None:
    mirror = opened(tmp_path, server.url("fleet.git"), git_token_file=token, git_username="u")
    with pytest.raises(RepositoryUnreadable, match="--git-ca-file"):
        mirror.refresh()
    assert not server.asked


def test_the_way_leads_through_the_proxy_that_is_told(
    tmp_path: Path, server: GitServer, ca: Path, token: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:1")
    with connect_proxy("hunter2") as proxy:
        told = {"git_token_file": token, "git_username": "u", "git_ca_file": ca}
        url = f"http://p:hunter2@127.0.0.1:{proxy.port}"
        assert opened(tmp_path, server.url("fleet.git"), git_proxy=url, **told).refresh().desired
        assert set(proxy.asked) == {f"127.0.0.1:{server.port}"}
        wrong = opened(
            tmp_path, server.url("fleet.git"), "other", git_proxy=url.replace("hunter2", "wrong-one"), **told
        )
        with pytest.raises(RepositoryUnreadable, match="--git-proxy") as refused:
            wrong.refresh()
        assert "wrong-one" not in str(refused.value)


# -- ssh


@pytest.fixture
def ssh(folder: Path, tmp_path: Path) -> Iterator[SshServer]:
    with serving_ssh(folder, tmp_path / "sshkeys") as server:
        yield server


@pytest.fixture
def known(ssh: SshServer, tmp_path: Path) -> Path:
    return written(tmp_path / "known hosts 100%", f"{ssh.line}\n")


def test_a_deploy_key_reads_and_writes(tmp_path: Path, ssh: SshServer, known: Path, clone: Path, git: Git) -> None:
    key = ssh.key.rename(tmp_path / "a key 100%")
    mirror = opened(tmp_path, ssh.url("fleet.git"), git_ssh_key_file=key, git_known_hosts_file=known)
    assert mirror.refresh().desired == git(clone, "rev-parse", "HEAD")
    mirror.push_status(a_status(mirror), None)
    assert mirror.refresh().status is not None


def test_without_it_nobody_gets_in(tmp_path: Path, ssh: SshServer, known: Path) -> None:
    mirror = opened(tmp_path, ssh.url("fleet.git"), git_known_hosts_file=known)
    with pytest.raises(RepositoryUnreadable, match="--git-ssh-key-file"):
        mirror.refresh()


def test_a_key_that_others_may_read_is_not_used(tmp_path: Path, ssh: SshServer, known: Path) -> None:
    mirror = opened(tmp_path, ssh.url("fleet.git"), git_ssh_key_file=ssh.key, git_known_hosts_file=known)
    ssh.key.chmod(0o644)
    with pytest.raises(RepositoryUnreadable) as refused:
        mirror.refresh()
    assert refused.value.hint == f"chmod 600 {ssh.key}"


def test_a_host_that_is_not_known_is_refused_with_the_line_to_add(tmp_path: Path, ssh: SshServer, git: Git) -> None:
    known = written(tmp_path / "known_hosts", "other.example.org ssh-ed25519 AAAA\n")
    mirror = opened(tmp_path, ssh.url("fleet.git"), git_ssh_key_file=ssh.key, git_known_hosts_file=known)
    for _ in range(2):
        with pytest.raises(RepositoryUnreadable, match="not known") as refused:
            mirror.refresh()
        assert known.read_text().count("\n") == 1, "nothing was added by itself"
    assert not (tmp_path / ".ssh" / "known_hosts").exists()
    text = str(refused.value)
    fingerprint = git(tmp_path, "-c", f"alias.print=!ssh-keygen -lf {ssh.key.with_name('host.pub')}", "print").split()[
        1
    ]
    assert fingerprint in text
    assert text.endswith(f"add this line to {known}: {ssh.line}")
    known.write_text(known.read_text() + text.rpartition(f"{known}: ")[2] + "\n")
    assert mirror.refresh().desired


def test_a_host_with_another_key_than_the_known_one_is_refused_without_a_line(
    tmp_path: Path, ssh: SshServer, known: Path
) -> None:
    """Whoever is in between would like it to be added."""
    kind, key = ssh.key.with_suffix(".pub").read_text().split()[:2]
    known.write_text(f"{ssh.line.split()[0]} {kind} {key}\n")
    mirror = opened(tmp_path, ssh.url("fleet.git"), git_ssh_key_file=ssh.key, git_known_hosts_file=known)
    with pytest.raises(RepositoryUnreadable, match="another key than the one in") as refused:
        mirror.refresh()
    assert ssh.line.split()[2] not in str(refused.value)


def test_nothing_that_the_users_ssh_says_lets_a_stranger_in(tmp_path: Path, ssh: SshServer) -> None:
    """No known_hosts is told: the user's own file counts, and what is not in it is refused."""
    mirror = opened(tmp_path, ssh.url("fleet.git"), git_ssh_key_file=ssh.key)
    command = mirror._remote._ssh.command()  # type: ignore[union-attr]
    assert "StrictHostKeyChecking=yes" in command, "before what a file says"
    with pytest.raises(RepositoryUnreadable, match=r"not known.*known_hosts: "):
        mirror.refresh()


# -- what cannot be


@pytest.mark.parametrize(
    ("url", "told", "said"),
    [
        ("http://git.example.org/x.git", {"git_token_file": "token"}, "is not secured"),
        ("https://u:hunter2@git.example.org/x.git", {"git_token_file": "token"}, "say one of the two"),
        ("git@git.example.org:x.git", {"git_token_file": "token"}, "is for http and https"),
        ("ssh://git.example.org/x.git", {"git_proxy": "http://p:1"}, "is for http and https"),
        ("ssh://git.example.org/x.git", {"git_ca_file": "token"}, "is for http and https"),
        ("https://git.example.org/x.git", {"git_ssh_key_file": "token"}, "is for ssh"),
        ("https://git.example.org/x.git", {"git_known_hosts_file": "token"}, "is for ssh"),
        ("git@git.example.org:x.git", {"git_ssh_key_file": 'to"ken'}, "takes no such path"),
        ("git@git.example.org:x.git", {"git_known_hosts_file": "${HOME}"}, "takes no such path"),
        ("git@git.example.org:x.git", {"git_ssh_key_file": "none"}, "No such file"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_sent(
    tmp_path: Path, token: Path, url: str, told: dict[str, str], said: str
) -> None:
    access = {name: value if name == "git_proxy" else tmp_path / value for name, value in told.items()}
    with pytest.raises(RepositoryUnreadable, match=said) as refused:
        Reaching(url, RemoteAccess(**access)).check()  # type: ignore[arg-type]
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("url", ["https://git.example.org/x.git", "http://127.0.0.1:3000/x.git"])
def test_what_can_be(token: Path, url: str) -> None:
    Reaching(url, RemoteAccess(git_token_file=token)).check()
    assert TOKEN not in repr(Reaching(url, RemoteAccess(git_token_file=token, git_proxy="http://p:hunter2@h:1")))
    assert "hunter2" not in repr(RemoteAccess(git_proxy="http://p:hunter2@h:1"))


def test_a_forge_that_protects_the_branch_is_told_of_with_what_to_do(
    tmp_path: Path, server: GitServer, ca: Path, token: Path, folder: Path
) -> None:
    hook = folder / "fleet.git" / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho 'You are not allowed to push code to protected branches' >&2; exit 1\n")
    hook.chmod(0o755)
    mirror = opened(tmp_path, server.url("fleet.git"), git_token_file=token, git_username="u", git_ca_file=ca)
    mirror.refresh()
    with pytest.raises(PushRejected, match=r"waits in the data directory.*write there"):
        mirror.push_status(a_status(mirror), None)


@pytest.mark.parametrize(
    ("status", "said"), [(429, "limits how often"), (403, "--git-token-file"), (503, "try it|tried")]
)
def test_a_forge_that_refuses_to_answer(
    tmp_path: Path, server: GitServer, ca: Path, token: Path, status: int, said: str
) -> None:
    def refuse(asked: GitAsked) -> bool:
        asked.reply(b"", status)
        return True

    server.spoil = refuse
    mirror = opened(tmp_path, server.url("fleet.git"), git_token_file=token, git_username="u", git_ca_file=ca)
    with pytest.raises(RepositoryUnreadable, match=said):
        mirror.refresh()
