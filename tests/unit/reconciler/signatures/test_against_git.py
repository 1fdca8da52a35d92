"""What is good here is good for git: `git verify-commit` on the same bytes, whatever was done to them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from support.signing import (
    Gpg,
    SshPerson,
    git_says_good,
    needs_gpg,
    needs_ssh,
    payload,
    run,
    with_signature,
    write,
)

from reconciler.repository.objects import Repository
from reconciler.signatures.own import CommitKey
from reconciler.signatures.signers import Signers
from reconciler.signatures.verifier import NotVerified, Verifier

Change = Callable[[bytes], bytes]

_lines = st.sampled_from(
    [
        b"gpgsig x",
        b"gpgsig -----BEGIN SSH SIGNATURE-----",
        b"gpgsig-sha256 x",
        b" continued",
        b"encoding latin-1",
        b"mergetag object x\n gpgsig -----BEGIN SSH SIGNATURE-----\n -----END SSH SIGNATURE-----",
        b"parent " + b"1" * 40,
        b"author Eve <e@example.com> 1 +0000",
        b"",
        b"\0",
    ]
)
_at = st.integers(0, 2000)


def _put_line(line: bytes, at: int) -> Change:
    def change(raw: bytes) -> bytes:
        lines = raw.split(b"\n")
        lines.insert(at % (len(lines) + 1), line)
        return b"\n".join(lines)

    return change


def _lose_line(at: int) -> Change:
    def change(raw: bytes) -> bytes:
        lines = raw.split(b"\n")
        del lines[at % len(lines)]
        return b"\n".join(lines)

    return change


def _repeat_signature(at: int) -> Change:
    """The block of the signature once more, before a line, or where it was and another place at once."""

    def change(raw: bytes) -> bytes:
        begin, end = raw.find(b"gpgsig "), raw.find(b"-----END")
        end = raw.find(b"\n", end) + 1
        block, lines = raw[begin:end], (raw[:begin] + raw[end:]).split(b"\n")
        lines.insert(at % len(lines), block.rstrip(b"\n"))
        made = b"\n".join(lines)
        return made if at % 2 else block + made

    return change


def _byte(at: int, value: int) -> Change:
    return lambda raw: raw[: at % len(raw)] + bytes([value]) + raw[at % len(raw) + 1 :]


def _append(text: bytes) -> Change:
    return lambda raw: raw + text


_changes = st.one_of(
    st.builds(_put_line, _lines, _at),
    st.builds(_lose_line, _at),
    st.builds(_repeat_signature, _at),
    st.builds(_byte, _at, st.sampled_from(b"\n\0 \rAgx")),
    st.builds(_append, st.sampled_from([b"", b"\n", b"\0"])),
)
_histories = st.lists(_changes, max_size=3)
_fuzz = settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def _agree(repo: Repository, raw: bytes, allowed: Signers, file: Path, **variables: str) -> bool:
    """Whether it is good for both; what is good here and not for git fails."""
    made = write(repo, raw)
    try:
        Verifier(None).signer(repo, made, allowed)
    except NotVerified:
        return False
    assert git_says_good(repo.path, made, file, **variables), raw
    return True


@needs_ssh
@_fuzz
@given(changes=_histories, message=st.sampled_from(["Say\n", "", "a\n\ngpgsig b\n", "\n\n"]), tag=st.booleans())
def test_ssh(repo: Repository, tmp_path: Path, changes: list[Change], message: str, tag: bool) -> None:
    key = CommitKey.open(tmp_path / "keys")
    (tmp_path / "allowed").write_text(f"alice {key.public}\n")
    headers = ("mergetag object x\n type commit\n gpgsig y",) if tag else ()
    unsigned = payload(repo, *headers, message=message)
    raw = with_signature(unsigned, key.sign(unsigned))
    for change in changes:
        raw = change(raw)
    allowed = Signers((tmp_path / "allowed").read_bytes())
    good = _agree(repo, raw, allowed, tmp_path / "allowed")
    assert good or changes
    event(f"good: {good}")


@needs_gpg
@_fuzz
@given(changes=_histories)
def test_openpgp(
    repo: Repository, tmp_path: Path, gpg: Gpg, openpgp: tuple[Signers, bytes], changes: list[Change]
) -> None:
    allowed, raw = openpgp
    payload(repo)
    for change in changes:
        raw = change(raw)
    good = _agree(repo, raw, allowed, tmp_path / "none", GNUPGHOME=str(gpg.home))
    assert good or changes
    event(f"good: {good}")


@pytest.fixture(scope="module")
def openpgp(gpg: Gpg, tmp_path_factory: pytest.TempPathFactory) -> tuple[Signers, bytes]:
    """Who may sign, and a commit that he signed."""
    directory = tmp_path_factory.mktemp("openpgp")
    run("git", "init", "-q", "--bare", directory)
    certificate = gpg.make("fuzzed")
    unsigned = payload(Repository(directory))
    return Signers(certificates=(("fuzzed", certificate),)), with_signature(unsigned, gpg.sign("fuzzed", unsigned))


@needs_ssh
def test_what_git_itself_signs(repo: Repository, tmp_path: Path, alice: SshPerson) -> None:
    """A merge of a signed tag too, whose signature is inside a header."""
    work = tmp_path / "work"
    run("git", "init", "-q", work)
    sign = ("-c", "gpg.format=ssh", "-c", f"user.signingKey={alice.file}")
    git = ("git", "-C", work, *sign)
    run(*git, "commit", "-q", "-S", "--allow-empty", "-m", "one")
    run(*git, "checkout", "-q", "-b", "side")
    run(*git, "commit", "-q", "-S", "--allow-empty", "-m", "two")
    run(*git, "tag", "-s", "-m", "tagged", "v1")
    run(*git, "checkout", "-q", "main")
    run(*git, "-c", "i18n.commitEncoding=latin-1", "commit", "-q", "-S", "--allow-empty", "-m", "three")
    run(*git, "merge", "-q", "-S", "--no-edit", "v1")
    made = run(*git, "rev-list", "--all").decode().split()
    assert len(made) == 4
    assert b"mergetag" in run(*git, "cat-file", "commit", "HEAD")
    allowed = Signers(f"alice {alice.public}\n".encode())
    assert {Verifier(None).signer(Repository(work), commit, allowed).user for commit in made} == {"alice"}


@needs_ssh
def test_a_commit_that_something_stands_in_for_is_judged_by_its_own_bytes(repo: Repository, tmp_path: Path) -> None:
    """git puts another in its place (refs/replace); what is served is what the id says."""
    key = CommitKey.open(tmp_path / "keys")
    unsigned = payload(repo)
    signed, bad = write(repo, with_signature(unsigned, key.sign(unsigned))), write(repo, payload(repo, message="Bad"))
    run("git", "-C", repo.path, "replace", bad, signed)
    with pytest.raises(NotVerified, match="it is not signed"):
        Verifier(key).signer(repo, bad, Signers())
