"""People who sign commits with the real programs, commits written byte by byte, and what git itself says of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from reconciler.repository.objects import Repository
from reconciler.repository.write import Batch
from reconciler.signatures.own import CommitKey

needs_ssh = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
needs_gpg = pytest.mark.skipif(shutil.which("gpg") is None, reason="gpg is not installed")


def run(*words: str | Path, given: bytes = b"", **variables: str) -> bytes:
    done = subprocess.run(words, input=given, capture_output=True, env={**os.environ, **variables}, check=False)
    assert done.returncode == 0, (words, done.stderr.decode())
    return done.stdout


class Person:
    """Who signs in process, which is quick; `line`: of a file of signers."""

    def __init__(self, name: str) -> None:
        self._key = CommitKey(Ed25519PrivateKey.generate())
        self.name, self.sign = name, self._key.sign

    def line(self, options: str = "") -> str:
        return f"{self.name} {options}{' ' if options else ''}{self._key.public}\n"


class SshPerson:
    """Someone with a key of OpenSSH's; `public` is `TYPE KEY`."""

    def __init__(self, directory: Path, name: str, *kind: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.file = directory / name
        run("ssh-keygen", "-q", "-N", "", "-C", "", "-f", self.file, "-t", *(kind or ("ed25519",)))
        self.public = self.file.with_suffix(".pub").read_text().strip()

    def sign(self, payload: bytes, namespace: str = "git", key: Path | None = None) -> str:
        words = ("ssh-keygen", "-q", "-Y", "sign", "-n", namespace, "-f", key or self.file)
        return run(*words, given=payload).decode().rstrip("\n")

    def certify(self, other: SshPerson, names: str, *more: str) -> Path:
        """The file of a certificate for another's key."""
        run("ssh-keygen", "-q", "-s", self.file, "-I", "id", "-n", names, *more, other.file.with_suffix(".pub"))
        return other.file.with_name(f"{other.file.name}-cert.pub")


class Gpg:
    """gpg with a home of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def __call__(self, *words: str, given: bytes = b"") -> bytes:
        begin = ("gpg", "--batch", "--yes", "--quiet", "--passphrase", "", "--pinentry-mode", "loopback")
        return run(*begin, *words, given=given, GNUPGHOME=str(self.home))

    def make(self, name: str, *more: str, usage: str = "cert,sign", ends: str = "never") -> bytes:
        """The certificate of a new key."""
        self(*more, "--quick-gen-key", name, "ed25519", usage, ends)
        return self("--armor", "--export", name)

    def fingerprint(self, name: str) -> str:
        lines = self("--with-colons", "--list-keys", name).decode().splitlines()
        return next(line.split(":")[9] for line in lines if line.startswith("fpr:"))

    def sign(self, name: str, payload: bytes, *more: str) -> str:
        return self(*more, "--armor", "--detach-sign", "-u", name, given=payload).decode().rstrip("\n")


@contextmanager
def gpg_home() -> Iterator[Gpg]:
    """Its sockets need a short path."""
    directory = tempfile.mkdtemp(prefix="gpg-", dir="/tmp")
    try:
        yield Gpg(Path(directory))
    finally:
        subprocess.run(["gpgconf", "--kill", "all"], env={**os.environ, "GNUPGHOME": directory}, check=False)
        shutil.rmtree(directory, ignore_errors=True)


def payload(repo: Repository, *headers: str, parents: tuple[str, ...] = (), message: str = "Say\n") -> bytes:
    """A commit of the empty tree without a signature; `headers` follow the committer."""
    batch = Batch()
    tree = batch.add(2, b"")
    batch.write(repo)
    who = "T <t@example.com> 1767225600 +0000"
    lines = [f"tree {tree}", *(f"parent {p}" for p in parents), f"author {who}", f"committer {who}", *headers]
    return ("\n".join(lines) + "\n\n" + message).encode()


def with_signature(unsigned: bytes, armor: str, header: str = "gpgsig") -> bytes:
    """As git writes it: the last header."""
    head, blank, message = unsigned.partition(b"\n\n")
    lines = armor.split("\n")
    return head + "\n".join([f"\n{header} {lines[0]}", *(f" {line}" for line in lines[1:])]).encode() + blank + message


def write(repo: Repository, raw: bytes) -> str:
    batch = Batch()
    made = batch.add(1, raw)
    batch.write(repo)
    return made


def git_says_good(repo: Path, commit: str, allowed: Path, **variables: str) -> bool:
    """Whether `git verify-commit` does."""
    settings = ("-c", f"gpg.ssh.allowedSignersFile={allowed}", "-c", "core.commitGraph=false")
    words = ["git", *settings, "-C", str(repo), "verify-commit", commit]
    return subprocess.run(words, capture_output=True, env={**os.environ, **variables}, check=False).returncode == 0
