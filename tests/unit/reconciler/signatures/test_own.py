"""The server's own key and what it signs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st
from support.signing import needs_ssh, run

from apiserver.auth.keys import KeysError
from reconciler.signatures.own import CommitKey, KnownCommitKey


def test_the_key_is_made_once_and_is_nobody_elses_to_read(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as many:
        found = {key.public for key in many.map(lambda _: CommitKey.open(tmp_path / "keys"), range(16))}
    assert len(found) == 1
    assert (tmp_path / "keys/commits").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "keys/commits.pub").read_text() == found.pop() + "\n"
    assert sorted(f.name for f in (tmp_path / "keys").iterdir()) == ["commits", "commits.pub"]


def test_a_public_key_that_is_missing_or_wrong_is_put_right(tmp_path: Path) -> None:
    made, public = CommitKey.open(tmp_path), tmp_path / "commits.pub"
    for damage in (public.unlink, lambda: public.write_text("ssh-ed25519 AAAA"), lambda: public.write_bytes(b"\xff")):
        damage()
        assert CommitKey.open(tmp_path).public == made.public
        assert public.read_text() == made.public + "\n"
    (tmp_path / "commits").chmod(0o644)
    CommitKey.open(tmp_path)
    assert (tmp_path / "commits").stat().st_mode & 0o777 == 0o600


def test_the_public_half_knows_what_the_key_signed(tmp_path: Path) -> None:
    key, public = CommitKey.open(tmp_path), tmp_path / "commits.pub"
    known = KnownCommitKey.read(public)
    assert (known.key, known.public) == (key.key, key.public)
    assert known.made(b"payload", key.sign(b"payload"))
    assert not known.made(b"other", key.sign(b"payload"))
    other = ec.generate_private_key(ec.SECP256R1()).public_key()
    form = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    for content in (b"", b"no key", b"ssh-ed25519 AAAA", other.public_bytes(*form)):
        public.write_bytes(content)
        with pytest.raises(KeysError, match=r"commits\.pub"):
            KnownCommitKey.read(public)
    with pytest.raises(KeysError, match="absent"):
        KnownCommitKey.read(tmp_path / "absent")


def _ecdsa() -> bytes:
    key, form = ec.generate_private_key(ec.SECP256R1()), serialization.PrivateFormat.OpenSSH
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


@pytest.mark.parametrize("content", [b"", b"no key", b"-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n", _ecdsa()])
def test_a_key_that_cannot_be_used_is_not_replaced(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "commits").write_bytes(content)
    with pytest.raises(KeysError, match=r"commits is .* Put it back from a backup; or move it away"):
        CommitKey.open(tmp_path)
    assert (tmp_path / "commits").read_bytes() == content


@needs_ssh
def test_a_key_with_a_passphrase_is_not_asked_for_it(tmp_path: Path) -> None:
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", tmp_path / "commits")
    with pytest.raises(KeysError, match="without a passphrase"):
        CommitKey.open(tmp_path)


@needs_ssh
def test_openssh_reads_the_key_and_takes_what_it_signs(tmp_path: Path) -> None:
    key = CommitKey.open(tmp_path)
    assert run("ssh-keygen", "-y", "-f", tmp_path / "commits").decode().split()[:2] == key.public.split()[:2]
    shown = run("ssh-keygen", "-l", "-f", tmp_path / "commits.pub").decode()
    assert key.key.removeprefix("SSH ") in shown
    (tmp_path / "allowed").write_text(f"treeplane {key.public}\n")
    (tmp_path / "sig").write_text(key.sign(b"payload"))
    words = ("ssh-keygen", "-Y", "verify", "-n", "git", "-I", "treeplane", "-f", tmp_path / "allowed")
    run(*words, "-s", tmp_path / "sig", given=b"payload")


@needs_ssh
def test_what_openssh_signs_with_the_key_is_ours(tmp_path: Path) -> None:
    key = CommitKey.open(tmp_path)
    words = ("ssh-keygen", "-q", "-Y", "sign", "-f", tmp_path / "commits", "-n")
    assert key.made(b"payload", run(*words, "git", given=b"payload").decode())
    assert key.made(b"payload", run(*words, "git", "-O", "hashalg=sha256", given=b"payload").decode())
    assert not key.made(b"payload", run(*words, "file", given=b"payload").decode())


@given(st.binary(max_size=100), st.integers(0, 10_000), st.characters(codec="ascii"))
def test_nothing_else_is_ours(tmp_path_factory: pytest.TempPathFactory, data: bytes, at: int, other: str) -> None:
    key = CommitKey.open(tmp_path_factory.getbasetemp() / "own")
    armor = key.sign(data)
    assert key.made(data, armor)
    assert armor == key.sign(data), "a commit's id follows from its content"
    assert not key.made(data + b"x", armor)
    at %= len(armor)
    damaged = armor[:at] + other + armor[at + 1 :]
    assert not key.made(data, damaged) or damaged.replace("\n", "") == armor.replace("\n", "")


def test_one_that_is_lost_is_made_anew_only_where_somebody_says_so(tmp_path: Path) -> None:
    public = CommitKey.open(tmp_path).public
    (tmp_path / "commits").unlink()
    with pytest.raises(KeysError, match=r"commits is missing.*\n  touch .*commits\.new$"):
        CommitKey.open(tmp_path)
    assert not (tmp_path / "commits").exists()
    (tmp_path / "commits.new").touch()
    assert CommitKey.open(tmp_path).public != public
    assert not (tmp_path / "commits.new").exists()
