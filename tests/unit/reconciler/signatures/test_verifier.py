"""What is remembered of verdicts, the server's own key, and many threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pysequoia
import pytest
from support.signing import payload, with_signature, write

from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.objects import Repository
from reconciler.signatures import sshkeys, verifier
from reconciler.signatures.own import CommitKey
from reconciler.signatures.signers import Signers
from reconciler.signatures.verifier import NotVerified, Signer, Unverified, Verifier


@pytest.fixture
def own(tmp_path: Path) -> CommitKey:
    return CommitKey.open(tmp_path / "keys")


def commit(repo: Repository, key: CommitKey, message: str = "Say\n") -> str:
    unsigned = payload(repo, message=message)
    return write(repo, with_signature(unsigned, key.sign(unsigned)))


class Asked:
    """In the place of ssh-keygen."""

    def __init__(self, patch: pytest.MonkeyPatch, verdict: Signer | NotVerified) -> None:
        self.times, self.verdict = 0, verdict
        patch.setattr(sshkeys, "signer", self)

    def __call__(self, *_: object) -> Signer:
        self.times += 1
        if isinstance(self.verdict, NotVerified):
            raise self.verdict
        return self.verdict


def test_what_this_server_signed_is_its_own_whatever_signers_say(
    repo: Repository, own: CommitKey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked(monkeypatch, NotVerified("x"))
    made = commit(repo, own)
    assert Verifier(own).signer(repo, made, Signers()) == Signer("", own.key, ours=True)
    assert asked.times == 0
    other = CommitKey.open(tmp_path / "other")
    with pytest.raises(NotVerified, match="x"):
        Verifier(other).signer(repo, made, Signers())


def test_what_this_server_signed_for_a_tenants_repository_is_nothing_of_the_fleets(
    repo: Repository, own: CommitKey
) -> None:
    """What lies beneath such a commit its tenant chooses: brought to the fleet, it is nobody's."""
    message = "Status of root:a\n\nExcerpt-Of: root:a\n"
    with pytest.raises(NotVerified, match="signed for a tenant's repository"):
        Verifier(own).signer(repo, commit(repo, own, message), Signers())
    assert Verifier(own).signer(repo, commit(repo, own, "Say Excerpt-Of: root:a\n"), Signers()).ours


def test_what_is_the_matter_with_a_signature_is_told_and_remembered(repo: Repository, own: CommitKey) -> None:
    unsigned = payload(repo)
    strange, damaged = commit(repo, own), write(repo, with_signature(unsigned, "-----BEGIN SSH SIGNATURE-----\nx"))
    other = write(repo, with_signature(unsigned, "-----BEGIN SIGNED MESSAGE-----\nx"))
    judge = Verifier(None)
    for made, how in (
        (write(repo, unsigned), Unverified.NONE),
        (strange, Unverified.UNKNOWN),
        (other, Unverified.UNKNOWN),
        (damaged, Unverified.BAD),
    ):
        for _ in range(2):
            with pytest.raises(NotVerified) as found:
                judge.signer(repo, made, Signers())
            assert found.value.how is how


def test_a_good_verdict_stays_for_the_same_signers(
    repo: Repository, own: CommitKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, made = Signer("alice", "k"), commit(repo, own)
    asked, now = Asked(monkeypatch, alice), [0.0]
    judge = Verifier(None, now=lambda: now[0])
    assert judge.signer(repo, made, Signers(digest="1")) == alice
    now[0], asked.verdict = 1e9, NotVerified("it has expired")
    assert judge.signer(repo, made, Signers(digest="1")) == alice
    assert asked.times == 1
    with pytest.raises(NotVerified, match="it has expired"):
        judge.signer(repo, made, Signers(digest="2"))


def test_a_bad_verdict_is_looked_at_anew_after_a_while(
    repo: Repository, own: CommitKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, asked, now = commit(repo, own), Asked(monkeypatch, NotVerified("not yet")), [0.0]
    judge = Verifier(None, now=lambda: now[0])
    for _ in range(3):
        with pytest.raises(NotVerified, match="not yet"):
            judge.signer(repo, made, Signers())
    assert asked.times == 1
    now[0], asked.verdict = 6.0, Signer("alice", "k")
    assert judge.signer(repo, made, Signers()).user == "alice"


def test_memory_is_bounded(repo: Repository, own: CommitKey, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifier, "_KEPT", 2)
    asked, judge = Asked(monkeypatch, Signer("alice", "k")), Verifier(None)
    for number in range(4):
        judge.signer(repo, commit(repo, own, str(number)), Signers())
    assert (asked.times, len(judge._good)) == (4, 2)
    asked.verdict = NotVerified("x")
    for number in range(4, 8):
        with pytest.raises(NotVerified):
            judge.signer(repo, commit(repo, own, str(number)), Signers())
    assert len(judge._bad) == 2


def test_threads_get_one_answer(repo: Repository, own: CommitKey) -> None:
    judge = Verifier(own)
    made = [commit(repo, own, str(number)) for number in range(8)] * 20
    with ThreadPoolExecutor(8) as many:
        assert {s.ours for s in many.map(lambda c: judge.signer(repo, c, Signers()), made)} == {True}


def test_threads_share_openpgp_certificates(repo: Repository) -> None:
    made = [pysequoia.Tsk.generate(str(number)) for number in range(3)]
    allowed = Signers(certificates=tuple((f"user-{n}", bytes(t.extract_certificate())) for n, t in enumerate(made)))

    def judged(number: int) -> bool:
        unsigned, key = payload(repo, message=str(number)), made[number % 3].signer()
        armor = pysequoia.sign(key, unsigned, mode=pysequoia.SignatureMode.DETACHED).decode().rstrip("\n")
        commit = write(repo, with_signature(unsigned, armor))
        return Verifier(None).signer(repo, commit, allowed).user == f"user-{number % 3}"

    with ThreadPoolExecutor(8) as many:
        assert all(many.map(judged, range(60)))


def test_a_directory_for_files_that_is_missing_is_not_taken_for_the_program(
    repo: Repository, own: CommitKey, tmp_path: Path
) -> None:
    allowed = Signers(f"alice {own.public}".encode())
    with pytest.raises(NotVerified, match="could not be run"):
        Verifier(None, tmp_path / "missing").signer(repo, commit(repo, own), allowed)


def test_what_is_no_commit_here(repo: Repository) -> None:
    for name in ("1" * 40, repo.commit(write(repo, payload(repo))).tree):
        with pytest.raises(RepositoryUnreadable):
            Verifier(None).signer(repo, name, Signers())
