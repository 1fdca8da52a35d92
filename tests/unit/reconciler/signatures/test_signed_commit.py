"""Which bytes of a commit were signed. What git would not write is refused; test_against_git has git's own opinion."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.signing import with_signature

from reconciler.signatures.signedcommit import part
from reconciler.signatures.verdict import NotVerified

WHO = "T <t@example.com> 1767225600 +0000"
HEAD = f"tree {'1' * 40}\nparent {'2' * 40}\nauthor {WHO}\ncommitter {WHO}"
UNSIGNED = f"{HEAD}\n\nSay\n".encode()
ARMOR = "-----BEGIN SSH SIGNATURE-----\nAAAA\n\nBBBB\n-----END SSH SIGNATURE-----"
TAG = "mergetag object 1\n type commit\n gpgsig -----BEGIN PGP SIGNATURE-----\n  x\n -----END PGP SIGNATURE-----"

_line = st.text(st.characters(codec="utf-8", exclude_characters="\n\0"), max_size=20)
_header = st.sampled_from(["encoding latin-1", TAG, "HG:extra x", "x-gpgsig -----BEGIN"]) | _line.map(
    lambda t: f"x {t}"
)


@given(st.lists(_header, max_size=3), st.binary(max_size=60))
def test_what_git_would_sign_is_what_is_left_without_the_header(headers: list[str], message: bytes) -> None:
    unsigned = "\n".join([HEAD, *headers]).encode() + b"\n\n" + message
    assert part(with_signature(unsigned, ARMOR)) == (unsigned, ARMOR)


def test_a_signature_need_not_be_the_last_header() -> None:
    raw = with_signature(UNSIGNED, ARMOR)
    assert part(raw.replace(b"\n\nSay", b"\nencoding x\n\nSay")) == (f"{HEAD}\nencoding x\n\nSay\n".encode(), ARMOR)


@pytest.mark.parametrize(
    "raw",
    [
        UNSIGNED,
        f"{HEAD}\n{TAG}\n\nSay\n".encode(),
        f"{HEAD}\n\ngpgsig {ARMOR}\n\nSay\n".encode(),
        f"{HEAD}\nencoding x\n gpgsig {ARMOR.splitlines()[0]}\n\nSay\n".encode(),
    ],
)
def test_what_looks_like_a_signature_elsewhere_is_none(raw: bytes) -> None:
    with pytest.raises(NotVerified, match="it is not signed"):
        part(raw)


SIGNED = with_signature(UNSIGNED, ARMOR)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\n\n",
        SIGNED.replace(b"\n\nSay\n", b""),
        SIGNED.replace(b"tree ", b"trees ", 1),
        SIGNED.replace(b"tree 1", b"tree G", 1),
        SIGNED.replace(b"author", b"gpgsig x\nauthor", 1),
        SIGNED.replace(b"\n\nSay", b"\nparent " + b"3" * 40 + b"\n\nSay"),
        SIGNED.replace(b"\n\nSay", b"\ntree " + b"3" * 40 + b"\n\nSay"),
        SIGNED.replace(b"\n\nSay", b"\nauthor x\n\nSay"),
        SIGNED.replace(b"T <t@", b"T\0<t@", 1),
        SIGNED.replace(b"AAAA", b"AA\0A", 1),
        SIGNED.replace(b"\ngpgsig", b"\n x\ngpgsig", 1),
    ],
)
def test_what_git_does_not_write_is_refused(raw: bytes) -> None:
    with pytest.raises(NotVerified, match="as git writes a commit"):
        part(raw)


@pytest.mark.parametrize(
    "raw",
    [
        with_signature(SIGNED, ARMOR),
        with_signature(SIGNED, ARMOR, "gpgsig-sha256"),
        with_signature(UNSIGNED, ARMOR, "gpgsig-sha256"),
        SIGNED.replace(b"\n\nSay", b"\ngpgsigs x\n\nSay"),
        SIGNED.replace(b"gpgsig ", b"gpgsig\n ", 1),
    ],
)
def test_more_than_one_signature_is_refused(raw: bytes) -> None:
    with pytest.raises(NotVerified, match="more than one"):
        part(raw)


def test_a_signature_has_a_size_and_is_text() -> None:
    for armor in ("A" * 70_000, "é"):
        with pytest.raises(NotVerified, match="too large, or not text"):
            part(with_signature(UNSIGNED, armor))
