"""Commits signed with OpenPGP: whose they are, by gpg's real keys. What the library takes and we do not is tried."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

import pysequoia
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pysequoia.packet import PacketPile, Tag
from support.signing import Gpg, needs_gpg, payload, with_signature, write

from reconciler.repository.objects import Repository
from reconciler.signatures import signers
from reconciler.signatures.signers import Signers
from reconciler.signatures.verifier import NotVerified, Verifier

pytestmark = needs_gpg


def having(tmp_path: Path, **certificates: bytes) -> Signers:
    folder = tmp_path / "signers" / "openpgp"
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in certificates.items():
        (folder / f"{name}.asc").write_bytes(data)
    return signers.of_directory(tmp_path / "signers")


def commit(repo: Repository, gpg: Gpg, name: str, *more: str) -> str:
    unsigned = payload(repo)
    return write(repo, with_signature(unsigned, gpg.sign(name, unsigned, *more)))


def refused(repo: Repository, made: str, allowed: Signers) -> str:
    with pytest.raises(NotVerified) as error:
        Verifier(None).signer(repo, made, allowed)
    return error.value.why


def at(time: str) -> tuple[str, str]:
    return "--faked-system-time", f"{time}T000000"


@pytest.fixture(scope="module")
def alice(gpg: Gpg) -> bytes:
    return gpg.make("alice")


def test_a_signature_counts_by_whose_file_the_certificate_is(
    repo: Repository, tmp_path: Path, gpg: Gpg, alice: bytes
) -> None:
    made, shown = commit(repo, gpg, "alice"), f"OpenPGP {gpg.fingerprint('alice')}"
    found = Verifier(None).signer(repo, made, having(tmp_path, **{"a.smith": alice}))
    assert (found.user, found.key, found.ours) == ("a.smith", shown, False)
    binary = having(tmp_path / "binary", alice=bytes(pysequoia.Cert.from_bytes(alice)))
    assert Verifier(None).signer(repo, made, binary).key == shown


def test_who_is_unknown_and_what_is_bad(repo: Repository, tmp_path: Path, gpg: Gpg, alice: bytes) -> None:
    allowed = having(tmp_path, alice=alice)
    gpg.make("eve")
    assert "is nobody's in signers/" in refused(repo, commit(repo, gpg, "eve"), allowed)
    other = gpg.sign("alice", payload(repo, message="another"))
    assert refused(repo, write(repo, with_signature(payload(repo), other)), allowed) == "its signature is bad"


def test_a_certificate_of_two_is_nobodys(repo: Repository, tmp_path: Path, gpg: Gpg, alice: bytes) -> None:
    made, allowed = commit(repo, gpg, "alice"), having(tmp_path, alice=alice, mallory=alice)
    assert "more than one in signers/ (alice, mallory)" in refused(repo, made, allowed)


def test_two_certificates_of_one_are_his(repo: Repository, tmp_path: Path, gpg: Gpg, alice: bytes) -> None:
    having(tmp_path, alice=alice)
    (tmp_path / "signers/openpgp/alice.pgp").write_bytes(gpg.make("alice's other"))
    allowed = signers.of_directory(tmp_path / "signers")
    for name in ("alice", "alice's other"):
        user = "=" + name if name == "alice" else name
        assert Verifier(None).signer(repo, commit(repo, gpg, user), allowed).user == "alice"


def test_a_signature_that_says_to_be_older_than_its_keys_end_is_none(
    repo: Repository, tmp_path: Path, gpg: Gpg
) -> None:
    allowed = having(tmp_path, old=gpg.make("old", *at("20200101"), ends="20200601T000000"))
    made = commit(repo, gpg, "old", *at("20200201"))
    assert "of old has expired" in refused(repo, made, allowed)


def test_nor_one_of_a_subkey(repo: Repository, tmp_path: Path, gpg: Gpg) -> None:
    gpg.make("sub", *at("20200101"), usage="cert")
    gpg(*at("20200101"), "--quick-add-key", gpg.fingerprint("sub"), "ed25519", "sign", "20200601T000000")
    allowed = having(tmp_path, sub=gpg("--export", "sub"))
    assert "of sub has expired" in refused(repo, commit(repo, gpg, "sub", *at("20200201")), allowed)
    gpg("--quick-add-key", gpg.fingerprint("sub"), "ed25519", "sign", "never")
    renewed = having(tmp_path, sub=gpg("--export", "sub"))
    assert Verifier(None).signer(repo, commit(repo, gpg, "sub"), renewed).user == "sub"


def test_what_is_revoked(repo: Repository, tmp_path: Path, gpg: Gpg) -> None:
    key = pysequoia.Tsk.generate("revoked")
    cert = key.extract_certificate()
    unsigned = payload(repo)
    armor = pysequoia.sign(key.signer(), unsigned, mode=pysequoia.SignatureMode.DETACHED).decode().rstrip("\n")
    made = write(repo, with_signature(unsigned, armor))
    assert Verifier(None).signer(repo, made, having(tmp_path, carol=bytes(cert))).user == "carol"
    revoked = having(tmp_path, carol=bytes(cert) + bytes(cert.revoke(key.certifier())))
    assert "of carol has been revoked" in refused(repo, made, revoked)


def test_a_signature_that_has_expired_or_lies_in_the_future(repo: Repository, tmp_path: Path, gpg: Gpg) -> None:
    allowed = having(tmp_path, long=gpg.make("long", *at("20200101")))
    old = commit(repo, gpg, "long", *at("20200201"), "--default-sig-expire", "10d")
    assert refused(repo, old, allowed) == "its signature is bad"
    assert refused(repo, commit(repo, gpg, "long", *at("20990201")), allowed) == "its signature is bad"


def test_what_is_signed_otherwise_than_git_does(repo: Repository, tmp_path: Path, gpg: Gpg, alice: bytes) -> None:
    allowed = having(tmp_path, alice=alice)
    assert "over text" in refused(repo, commit(repo, gpg, "=alice", "--textmode"), allowed)
    assert "hash that is broken" in refused(repo, commit(repo, gpg, "=alice", "--digest-algo", "SHA1"), allowed)
    unsigned = payload(repo)
    one = bytes(pysequoia.Sig.from_bytes(gpg.sign("=alice", unsigned).encode()))
    two = pysequoia.armor(one + one, pysequoia.ArmorKind.Signature).rstrip("\n")
    assert "more than one" in refused(repo, write(repo, with_signature(unsigned, two)), allowed)


def test_a_certificate_that_holds_anothers_key_makes_nobody_of_its_owner(
    repo: Repository, tmp_path: Path, gpg: Gpg, alice: bytes
) -> None:
    """A subkey without a signature of its own, which says that it belongs there."""
    hers = pysequoia.Cert.from_bytes(alice)
    key = next(p for p in PacketPile.from_bytes(bytes(hers)) if p.tag == Tag.PublicKey)
    mallory = bytes(pysequoia.Tsk.generate("mallory").extract_certificate())
    subkey = bytes([0xC0 | 14]) + bytes(key)[1:]
    allowed = having(tmp_path, alice=alice, mallory=mallory + subkey)
    assert Verifier(None).signer(repo, commit(repo, gpg, "=alice"), allowed).user == "alice"
    (tmp_path / "signers/openpgp/alice.asc").unlink()
    alone = signers.of_directory(tmp_path / "signers")
    assert refused(repo, commit(repo, gpg, "=alice"), alone) == "its signature is bad"


def test_a_key_that_may_not_sign_is_nobodys_signature(repo: Repository, tmp_path: Path, gpg: Gpg) -> None:
    """gpg would not sign with it, so the signature is made by hand."""
    unsigned = payload(repo)
    for name, usage, good in (("signs", "cert,sign", True), ("certifies", "cert", False)):
        allowed = having(tmp_path / name, carol=gpg.make(name, usage=usage))
        armor = by_hand(gpg("--export-secret-keys", name), gpg.fingerprint(name), unsigned)
        made = write(repo, with_signature(unsigned, armor))
        if good:
            assert Verifier(None).signer(repo, made, allowed).user == "carol"
        else:
            assert refused(repo, made, allowed) == "its signature is bad"


def by_hand(secret: bytes, fingerprint: str, data: bytes) -> str:
    """A signature (version 4, EdDSA, SHA-256) by the first key of what gpg exports."""
    body = bytes(next(iter(PacketPile.from_bytes(secret))).body)
    curve = 7 + body[6]  # behind the version, the time, the algorithm, and the curve with its length
    secret = curve + 2 + (int.from_bytes(body[curve : curve + 2], "big") + 7) // 8
    seed = body[secret + 3 : -2].rjust(32, b"\0")  # a number, without zeros at its head, and before a checksum
    created = string_of(2, int(time.time()).to_bytes(4, "big")) + string_of(33, b"\4" + bytes.fromhex(fingerprint))
    head = b"\4\0\x16\x08" + len(created).to_bytes(2, "big") + created
    digest = hashlib.sha256(data + head + b"\4\xff" + len(head).to_bytes(4, "big")).digest()
    made = Ed25519PrivateKey.from_private_bytes(seed).sign(digest)
    numbers = [int.from_bytes(half, "big") for half in (made[:32], made[32:])]
    mpis = [n.bit_length().to_bytes(2, "big") + n.to_bytes((n.bit_length() + 7) // 8, "big") for n in numbers]
    packet = head + b"\0\0" + digest[:2] + b"".join(mpis)
    return pysequoia.armor(b"\xc2" + bytes([len(packet)]) + packet, pysequoia.ArmorKind.Signature).rstrip("\n")


def string_of(kind: int, data: bytes) -> bytes:
    return bytes([len(data) + 1, kind]) + data


def test_certificates_that_are_none(tmp_path: Path, gpg: Gpg, alice: bytes) -> None:
    private = gpg("--armor", "--export-secret-keys", "=alice")
    bob = gpg.make("bob")
    found = having(tmp_path, a=b"", b=b"junk", c=private, d=alice + bob, e=alice[: len(alice) // 2], good=bob)
    assert [user for user, _ in found.certificates] == ["good"]
    said = {text.split("/")[-1].split(".")[0]: text for text in found.problems}
    assert sorted(said) == ["b", "c", "d", "e"]
    assert "holds a private key" in said["c"]
    assert "PRIVATE KEY" not in "".join(found.problems)
