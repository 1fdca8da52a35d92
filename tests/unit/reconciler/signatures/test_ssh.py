"""Commits signed with SSH: whose they are, by real keys and the real ssh-keygen."""

from __future__ import annotations

import base64
import os
import time
from pathlib import Path

import pytest
from support.signing import SshPerson, needs_ssh, payload, with_signature, write

from reconciler.repository.objects import Repository
from reconciler.signatures import signers, sshkeys, sshsig
from reconciler.signatures.signers import Signers
from reconciler.signatures.verifier import NotVerified, Signer, Verifier

pytestmark = needs_ssh


def allowing(tmp_path: Path, *lines: str) -> Signers:
    (tmp_path / "signers").mkdir(exist_ok=True)
    (tmp_path / "signers" / "allowed_signers").write_text("\n".join(lines))
    return signers.of_directory(tmp_path / "signers")


def commit(repo: Repository, person: SshPerson, namespace: str = "git", key: Path | None = None) -> str:
    unsigned = payload(repo)
    return write(repo, with_signature(unsigned, person.sign(unsigned, namespace, key)))


def refused(repo: Repository, made: str, allowed: Signers) -> str:
    with pytest.raises(NotVerified) as error:
        Verifier(None).signer(repo, made, allowed)
    return error.value.why


@pytest.mark.parametrize("kind", [("ed25519",), ("rsa", "-b", "2048"), ("ecdsa", "-b", "256"), ("ecdsa", "-b", "521")])
def test_every_kind_of_key(repo: Repository, tmp_path: Path, bob: SshPerson, kind: tuple[str, ...]) -> None:
    person = SshPerson(tmp_path / "people", "key", *kind)
    allowed = allowing(tmp_path, f"bob {bob.public}", f"alice,alice@example.com {person.public}")
    found = Verifier(None, tmp_path).signer(repo, commit(repo, person), allowed)
    assert (found.user, found.ours) == ("alice", False)
    assert found.key.startswith("SSH SHA256:")
    assert [f.name for f in tmp_path.iterdir() if f.name.startswith("signature-")] == []


def test_who_is_unknown_and_what_is_bad(repo: Repository, tmp_path: Path, alice: SshPerson, bob: SshPerson) -> None:
    made = commit(repo, alice)
    assert "is nobody's in signers/" in refused(repo, made, allowing(tmp_path, f"bob {bob.public}"))
    assert "is nobody's in signers/" in refused(repo, made, Signers())
    allowed = allowing(tmp_path, f"alice {alice.public}")
    armor = alice.sign(payload(repo, message="another"))
    assert refused(repo, write(repo, with_signature(payload(repo), armor)), allowed) == "its signature is bad"
    assert "another purpose" in refused(repo, commit(repo, alice, "file"), allowed)
    assert refused(repo, write(repo, payload(repo)), allowed) == "it is not signed"


def test_a_signature_of_one_is_not_anothers(repo: Repository, tmp_path: Path, alice: SshPerson, bob: SshPerson) -> None:
    """The key in the signature replaced by that of somebody who may sign."""
    unsigned, allowed = payload(repo), allowing(tmp_path, f"bob {bob.public}")
    theirs, ours = sshsig.parse(alice.sign(unsigned)), sshsig.parse(bob.sign(unsigned))
    forged = sshsig.armored(theirs.raw.replace(theirs.key, ours.key))
    assert refused(repo, write(repo, with_signature(unsigned, forged)), allowed) == "its signature is bad"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ('valid-before="20200101"', "has expired"),
        ('valid-after="20990101Z"', "is not valid yet"),
        ('namespaces="file,mail"', "is not for signatures of git"),
        ("cert-authority", "is nobody's"),
    ],
)
def test_options_count_at_the_present_time(
    repo: Repository, tmp_path: Path, alice: SshPerson, options: str, why: str
) -> None:
    """A commit's time, of January 2026 here, is whoever signs's to choose."""
    assert why in refused(repo, commit(repo, alice), allowing(tmp_path, f"alice {options} {alice.public}"))


def test_one_of_several_lines_is_enough(repo: Repository, tmp_path: Path, alice: SshPerson) -> None:
    lines = [f'alice valid-before="20200101" {alice.public}', f'alice namespaces="gi*" {alice.public}']
    assert Verifier(None).signer(repo, commit(repo, alice), allowing(tmp_path, *lines)).user == "alice"


def test_times_are_utcs_wherever_the_server_is(
    repo: Repository, tmp_path: Path, alice: SshPerson, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = commit(repo, alice)
    minute = time.strftime("%Y%m%d%H%M%S", time.gmtime(time.time() + 300))
    for zone in ("UTC+11", "UTC-11"):
        monkeypatch.setenv("TZ", zone)
        for end in ("", "Z"):
            allowed = allowing(tmp_path, f'alice valid-before="{minute}{end}" {alice.public}')
            assert Verifier(None).signer(repo, made, allowed).user == "alice"
            allowed = allowing(tmp_path, f'alice valid-after="{minute}{end}" {alice.public}')
            assert "not valid yet" in refused(repo, made, allowed)


def test_a_key_of_two_is_nobodys(repo: Repository, tmp_path: Path, alice: SshPerson) -> None:
    lines = f"alice {alice.public}", f"mallory {alice.public}"
    assert "more than one in signers/ (alice, mallory)" in refused(
        repo, commit(repo, alice), allowing(tmp_path, *lines)
    )


@pytest.mark.parametrize("name", ["-alice", "-Iroot", "$(id)", "a;b", "Alice Smith", "josé", "../x", "#alice"])
def test_a_name_is_a_name_and_nothing_else(repo: Repository, tmp_path: Path, alice: SshPerson, name: str) -> None:
    allowed = allowing(tmp_path, f'"{name}" {alice.public}')
    assert Verifier(None).signer(repo, commit(repo, alice), allowed).user == name


@pytest.mark.parametrize(
    "line",
    ["*", "!bob,*", "system:admin", "alice,*", "alice\x1b", "alice cert-authority,no-such-option", 'a"b'],
)
def test_lines_that_name_nobody(repo: Repository, tmp_path: Path, alice: SshPerson, line: str) -> None:
    allowed = allowing(tmp_path, f"{line} {alice.public}")
    assert not allowed
    assert len(allowed.problems) == 1
    assert allowed.problems[0].split("/")[-1].startswith("allowed_signers:1: ")
    assert "nobody's" in refused(repo, commit(repo, alice), allowed)


def test_certificates(repo: Repository, tmp_path: Path, alice: SshPerson, bob: SshPerson) -> None:
    people, authority = tmp_path / "people", SshPerson(tmp_path / "ca", "ca")
    person = SshPerson(people, "key")
    lines = [f"{name} cert-authority {authority.public}" for name in ("alice", "-bob", "carol")]
    allowed = allowing(tmp_path, *lines)

    def made(names: str, *more: str, by: SshPerson = authority) -> str:
        return commit(repo, person, key=by.certify(person, names, *more))

    found = Verifier(None).signer(repo, made("alice"), allowed)
    assert (found.user, found.key[:26]) == ("alice", "SSH certificate of SHA256:")
    assert Verifier(None).signer(repo, made("-bob,dave"), allowed).user == "-bob"
    assert "more than one" in refused(repo, made("alice,carol"), allowed)
    assert "nobody's" in refused(repo, made("dave"), allowed)
    assert "nobody's" in refused(repo, made("alice", by=alice), allowed)
    assert refused(repo, made("alice", "-h"), allowed) == "its signature is bad"
    assert "has expired" in refused(repo, made("alice", "-V", "20200101:20200201"), allowed)
    assert "nobody's" in refused(repo, commit(repo, person), allowed)
    assert "nobody's" in refused(repo, made("alice"), allowing(tmp_path, f"alice {authority.public}"))
    assert "nobody's" in refused(repo, made("alice"), allowing(tmp_path, f"alice {person.public}"))


def test_what_is_not_supported_says_so(repo: Repository) -> None:
    def why(armor: str) -> str:
        return refused(repo, write(repo, with_signature(payload(repo), armor)), Signers())

    assert "by X.509, which is not supported" in why(
        "-----BEGIN SIGNED MESSAGE-----\nAAAA\n-----END SIGNED MESSAGE-----"
    )
    assert "of a kind that is not supported" in why("-----BEGIN PGP MESSAGE-----\nAAAA\n-----END PGP MESSAGE-----")
    assert "is damaged" in why("-----BEGIN SSH SIGNATURE-----\n!!!!\n-----END SSH SIGNATURE-----")
    assert "is damaged" in why("-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\nmore")
    assert "is damaged" in why("-----BEGIN PGP SIGNATURE-----\n\nAAAA\n-----END PGP SIGNATURE-----")


def _program(tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "bin" / "ssh-keygen"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return program


def test_a_program_that_is_missing_or_hangs(
    repo: Repository, tmp_path: Path, alice: SshPerson, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, allowed = commit(repo, alice), allowing(tmp_path, f"alice {alice.public}")
    _program(tmp_path, "exec sleep 60", monkeypatch)
    monkeypatch.setattr(sshkeys, "_DEADLINE", 0.2)
    assert "within 0 seconds" in refused(repo, made, allowed)
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    assert "ssh-keygen is not there" in refused(repo, made, allowed)


def test_the_program_is_told_nothing_of_this_machine(
    repo: Repository, tmp_path: Path, alice: SshPerson, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, allowed = commit(repo, alice), allowing(tmp_path, f"-alice {alice.public}")
    seen = tmp_path / "seen"
    _program(tmp_path, f'env > {seen}; echo "$@" >> {seen}; ls -ld . >> {seen}', monkeypatch)
    for name in ("SSH_AUTH_SOCK", "SSH_ASKPASS", "DISPLAY", "HOME", "SSH_SK_PROVIDER"):
        monkeypatch.setenv(name, "canary")
    assert Verifier(None, tmp_path).signer(repo, made, allowed) == Signer("-alice", allowed_key(alice))
    text = seen.read_text()
    assert "canary" not in text
    assert "alice" not in text, "no argument is anybody's to choose"
    assert "drwx------" in text


def allowed_key(person: SshPerson) -> str:
    return f"SSH {sshsig.fingerprint(base64.b64decode(person.public.split()[1]))}"
