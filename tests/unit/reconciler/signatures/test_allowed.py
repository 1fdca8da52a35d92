"""Lines of allowed_signers: which count, for whom, and what ssh-keygen is told of them."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.signatures.allowed import read
from reconciler.signatures.sshsig import string

WIRE = string(b"ssh-ed25519") + string(bytes(32))
KEY = f"ssh-ed25519 {base64.b64encode(WIRE).decode()}"
OTHER = string(b"ssh-ed25519") + string(bytes([1]) * 32)
OTHERS = f"ssh-ed25519 {base64.b64encode(OTHER).decode()}"
_NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z"), exclude_characters='"*?!,\\#'), min_size=1)


@pytest.mark.parametrize(
    ("line", "user", "options"),
    [
        (f"alice {KEY}", "alice", ""),
        (f'alice\t{KEY} a comment, "quoted"', "alice", ""),
        (f"  alice {KEY}\r", "alice", ""),
        (f"alice,alice@example.com {KEY}", "alice", ""),
        (f'"Alice Smith" {KEY}', "Alice Smith", ""),
        (f"-I {KEY}", "-I", ""),
        (f"josé@example.com {KEY}", "josé@example.com", ""),
        (f'alice namespaces="git,file" {KEY}', "alice", 'namespaces="git,file" '),
        (f'alice Valid-Before="20301231Z" {KEY}', "alice", 'valid-before="20301231000000" '),
        (
            f'alice valid-after="202601020304",valid-before="20301231235959" {KEY}',
            "alice",
            'valid-after="20260102030400",valid-before="20301231235959" ',
        ),
    ],
)
def test_a_line_that_counts(line: str, user: str, options: str) -> None:
    found = read(line.encode())
    assert found.problems == ()
    (one,) = found.keys[WIRE]
    assert (one.user, one.options, one.authority) == (user, options, False)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (f"*@example.com {KEY}", "pattern"),
        (f"alice,!bob {KEY}", "pattern"),
        (f"alic? {KEY}", "pattern"),
        (f"system:admin {KEY}", "the server's own"),
        (f"alice,system:masters {KEY}", "the server's own"),
        (f"alice,,bob {KEY}", "empty"),
        (f'" alice" {KEY}', "blanks"),
        (f"ali\x1bce {KEY}", "cannot be seen"),
        (f"ali\u202ece {KEY}", "cannot be seen"),
        (f"ali\0ce {KEY}", "cannot be seen"),
        (KEY, "it is not `NAME"),
        ("alice", "it is not `NAME"),
        (f"alice ssh-rsa {KEY.split()[1]}", "another type"),
        ("alice ssh-ed25519 AAAAAAAAAAAAAAAAAAAA", "type"),
        ("alice ssh-ed25519 " + "A" * 17, "damaged"),
        (f"alice {KEY.replace('ssh-ed25519', 'ssh-ed25519-cert-v01@openssh.com')}", "type"),
        (f"alice valid-before=20301231 {KEY}", "options"),
        (f'alice valid-before="tomorrow" {KEY}', "a time is not"),
        (f'alice valid-before="20301399" {KEY}', "a time is not"),
        (f'alice valid-after="20300101",valid-before="20200101" {KEY}', "ends before"),
        (f'alice valid-before="20200101",valid-after="20300101" {KEY}', "ends before"),
        (f'alice namespaces="git",namespaces="file" {KEY}', "twice"),
        (f'alice namespaces="" {KEY}', "not written so"),
        (f'alice namespaces="a\\"b" {KEY}', "it is not `NAME"),
        (f"alice no-touch-required {KEY}", "no-touch-required is unknown"),
        (f'alice namespaces="git",,cert-authority {KEY}', "options"),
        (f'alice namespaces="git", {KEY}', "options"),
        (f"alice cert-authority,{KEY}", "options"),
        (f'"alice {KEY}', "it is not `NAME"),
        (f"{'alice,' * 5_000}bob {KEY}", "longer than"),
    ],
)
def test_a_line_that_counts_for_nobody_takes_no_other_with_it(line: str, why: str) -> None:
    found = read(f"{line}\nbob {OTHERS}\n".encode())
    assert [number for number, _ in found.problems] == [1]
    assert why in found.problems[0][1]
    assert {key: [k.user for k in lines] for key, lines in found.keys.items()} == {OTHER: ["bob"]}


def test_what_is_no_text_is_a_problem_of_its_line() -> None:
    found = read(b"\xff " + KEY.encode() + b"\n\n# comment \xff\nbob " + OTHERS.encode())
    assert [number for number, _ in found.problems] == [1, 3]
    assert list(found.keys) == [OTHER]


def test_there_is_an_end_to_lines() -> None:
    found = read(b"\n" * 20_000 + f"alice {KEY}".encode())
    assert (dict(found.keys), found.untold) == ({}, 0)
    assert found.problems == ((20_001, "no line from here on is read: there are more than 20000"),)
    assert read(b"\n" * 19_999 + f"alice {KEY}".encode()).problems == ()


def test_an_authority_is_told_from_a_key() -> None:
    (one,) = read(f"alice cert-authority {KEY}\n".encode()).keys[WIRE]
    assert one.authority


@given(st.binary(max_size=200))
def test_nothing_makes_reading_fail(data: bytes) -> None:
    read(data + b"\nbob " + OTHERS.encode())


@given(st.lists(_NAMES, min_size=1, max_size=3), st.text(max_size=40))
def test_no_text_behind_a_name_adds_a_name_or_an_option_that_was_not_written(names: list[str], junk: str) -> None:
    for lines in read(f"{','.join(names)} {junk} {KEY}".encode("utf-8", "surrogatepass")).keys.values():
        for line in lines:
            assert "\n" not in line.options
            assert set(line.options.replace("=", ",").split(",")) <= {""} or '"' in junk or "cert-authority" in junk
