"""A certificate that the server was given: what fits, what does not, and when it is looked at again."""

from __future__ import annotations

import math
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import dsa, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID
from support.authorities import Authority, key_pem, pem

from apiserver.auth import pki_serving
from apiserver.auth.keys import Pair
from apiserver.auth.pki_serving import ServerNames, ServingFiles, read_pair

CA = Authority("some CA")
BETWEEN = Authority("between", CA)
NOW = datetime.now(UTC)


@pytest.fixture
def files(tmp_path: Path) -> Pair:
    """Old ones: what is written over them within a tick of the file system's clock, in as many bytes, looks new."""
    made = BETWEEN.issue("a.example.org").put(tmp_path)
    for file in made:
        os.utime(file, (0, 0))
    return Pair(*made)


def serial(files: ServingFiles[Any]) -> int:
    assert files.pair is not None
    return files.pair.chain[0].serial_number


def test_a_chain_is_read_whole(files: Pair) -> None:
    pair = read_pair(files, NOW)
    assert [each.subject.rfc4514_string() for each in pair.chain] == ["CN=a.example.org", "CN=between"]
    assert pair.roots == ()
    files.certificate.write_bytes(files.certificate.read_bytes() + pem(CA.certificate))
    assert read_pair(files, NOW).roots == (CA.certificate,)
    assert "PRIVATE" not in repr(pair)


def test_certificate_and_key_may_be_one_file(files: Pair) -> None:
    files.certificate.write_bytes(files.key.read_bytes() + files.certificate.read_bytes())
    assert len(read_pair(Pair(files.certificate, files.certificate), NOW).chain) == 2


@pytest.mark.parametrize("key", [rsa.generate_private_key(65537, 2048), ed25519.Ed25519PrivateKey.generate()])
def test_kinds_of_keys(tmp_path: Path, key: Any) -> None:
    read_pair(Pair(*CA.issue("a.example.org", key=key).put(tmp_path)), NOW)


def broken(files: Pair, how: str) -> None:
    certificate, key = files.certificate.read_bytes(), files.key.read_bytes()
    match how:
        case "of another certificate":
            files.key.write_bytes(key_pem(CA.issue("b").key))
        case "the chain the wrong way round":
            files.certificate.write_bytes(pem(*reversed(BETWEEN.issue("a.example.org").chain)))
        case "ended":
            CA.issue("a", begins=timedelta(days=-2), ends=timedelta(days=-1)).put(files.key.parent)
        case "not begun":
            CA.issue("a", begins=timedelta(days=1)).put(files.key.parent)
        case "for clients":
            CA.issue("a", use=ExtendedKeyUsageOID.CLIENT_AUTH).put(files.key.parent)
        case "encrypted":
            issued = CA.issue("a")
            issued.put(files.key.parent)
            files.key.write_bytes(key_pem(issued.key, b"secret"))
        case "a short key":
            CA.issue("a", key=rsa.generate_private_key(65537, 1024)).put(files.key.parent)
        case "another kind of key":
            files.key.write_bytes(key_pem(dsa.generate_private_key(2048)))
        case "half a certificate":
            files.certificate.write_bytes(certificate[:200])
        case "half a chain":
            files.certificate.write_bytes(certificate[:-60])
        case "half a key":
            files.key.write_bytes(key[:60])
        case "an empty certificate":
            files.certificate.write_bytes(b"")
        case "an empty key":
            files.key.write_bytes(b"")
        case "the key as the certificate":
            files.certificate.write_bytes(key)
        case "not there":
            files.key.unlink()
        case "a directory":
            files.certificate.unlink()
            files.certificate.mkdir()


BROKEN = {
    "of another certificate": "the key in {k} is not that of the first certificate in {c}",
    "the chain the wrong way round": "the key in {k} is not that of the first certificate in {c}",
    "ended": "the certificate in {c} counts from ",
    "not begun": "the certificate in {c} counts from ",
    "for clients": "the certificate in {c} is not for servers",
    "encrypted": "the key in {k} is encrypted: it has to stand there without a password",
    "a short key": "the key in {k} has 1024 bits",
    "another kind of key": "the key in {k} is of a kind that TLS has no use for",
    "half a certificate": "{c} is not certificates in PEM, or not whole",
    "half a chain": "{c} is not certificates in PEM, or not whole",
    "half a key": "{k} is not a private key in PEM, or not whole",
    "an empty certificate": "{c} is not certificates in PEM, or not whole",
    "an empty key": "{k} is not a private key in PEM, or not whole",
    "the key as the certificate": "{c} is not certificates in PEM, or not whole",
    "not there": "{k}: No such file or directory",
    "a directory": "{c}: Is a directory",
}


@pytest.mark.parametrize("how", BROKEN)
def test_what_does_not_fit_leaves_what_there_was(files: Pair, how: str) -> None:
    """Of what stands in the files, no word is told."""
    follow = ServingFiles(files, lambda pair: pair.names)
    assert follow.look()
    first, names = serial(follow), follow.made
    broken(files, how)
    assert not follow.look()
    assert (serial(follow), follow.made) == (first, names)
    told = BROKEN[how].format(c=files.certificate, k=files.key)
    assert follow.problem.startswith(told)
    at_start = ServingFiles(files, lambda pair: pair)
    assert not at_start.look()
    assert (at_start.pair, at_start.problem) == (None, follow.problem)


def test_what_nobody_can_use_leaves_what_there_was(files: Pair) -> None:
    def use(pair: Any) -> int:
        if refused:
            raise ValueError("no use")
        return 1

    refused = False
    follow = ServingFiles(files, use)
    assert follow.look()
    refused = True
    CA.issue("a").put(files.key.parent)
    assert not follow.look()
    assert follow.problem == "no use"
    assert follow.made == 1


def test_nothing_is_read_while_nothing_changes(files: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pki_serving, "_EVERY", math.inf)  # however long this takes
    follow = ServingFiles(files, lambda pair: pair)
    follow.look()
    reads = []
    real = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: reads.append(path) or real(path))
    assert not follow.look()
    assert reads == []
    os.utime(files.certificate)
    assert not follow.look()
    assert len(reads) == 2, "it was touched, and says the same"


def test_links_that_are_swapped_are_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Kubernetes mounts a Secret: ..data leads to a directory, and one rename leads it to another. Even if the new
    files look the same from outside."""
    monkeypatch.setattr(pki_serving, "_EVERY", 0.0)
    monkeypatch.setattr(pki_serving, "stamp", lambda _: (0, 0, 0))
    for number in (1, 2):
        BETWEEN.issue("a.example.org").put(tmp_path / f"..{number}")
    (tmp_path / "..data").symlink_to("..1")
    for name in ("tls.crt", "tls.key"):
        (tmp_path / name).symlink_to(f"..data/{name}")
    follow = ServingFiles(Pair(tmp_path / "tls.crt", tmp_path / "tls.key"), lambda pair: pair)
    assert follow.look()
    first = serial(follow)
    (tmp_path / "new").symlink_to("..2")
    (tmp_path / "new").rename(tmp_path / "..data")
    assert follow.look()
    assert serial(follow) != first
    assert not follow.look()


def test_one_after_the_other(files: Pair, tmp_path: Path) -> None:
    """Certificate first, key later: in between the old pair counts, then the new one, and nothing is wrong any more."""
    follow = ServingFiles(files, lambda pair: pair)
    follow.look()
    first, new = serial(follow), CA.issue("a").put(tmp_path / "new")
    files.certificate.write_bytes(new[0].read_bytes())
    assert not follow.look()
    assert serial(follow) == first
    assert follow.problem
    files.key.write_bytes(new[1].read_bytes())
    assert follow.look()
    assert serial(follow) != first
    assert follow.problem == ""


def test_going_back_to_what_counts_mends_it(files: Pair) -> None:
    follow = ServingFiles(files, lambda pair: pair)
    follow.look()
    whole = files.certificate.read_bytes()
    files.certificate.write_bytes(b"x")
    assert not follow.look()
    assert follow.problem
    files.certificate.write_bytes(whole)
    assert not follow.look()
    assert follow.problem == ""


@pytest.mark.parametrize(
    ("host", "is_there"),
    [
        ("a.example.org", True), ("A.Example.org.", True), ("x.apps.example.org", True),
        ("x.y.apps.example.org", False),
        ("apps.example.org", False), ("10.0.0.1", True), ("::ffff:10.0.0.1", True), ("2001:DB8:0::1", True),
        ("10.0.0.2", False), ("localhost", False), ("", False),
    ],
)  # fmt: skip
def test_names(host: str, is_there: bool) -> None:
    issued = CA.issue("a.example.org", "*.apps.example.org", "10.0.0.1", "2001:db8::1")
    assert ServerNames.of(issued.chain[0]).have(host) is is_there


def test_a_certificate_without_names_is_for_nobody() -> None:
    assert not ServerNames.of(CA.certificate).have("some CA")
