"""What is not as it was encrypted is never read: whatever byte of it changed, wherever it was put."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sealing import AgeKey, encrypted, secret

from reconciler.encryption import agekeys
from reconciler.encryption.agekeys import BadKeyFile, identities
from reconciler.encryption.document import EncryptedFile
from reconciler.encryption.faults import DamagedFile, LockedFile, UnfitFile

KEY = AgeKey()
IDENTITIES = {each.recipient: each for each in identities(KEY.secret)}
SAID = secret(password="correct-horse", user="somebody", empty="")
TEXT = encrypted(SAID, KEY)
ENCRYPTED = re.compile(r"ENC\[AES256_GCM,data:(.*?),iv:(.*?),tag:(.*?),type:(.*?)\]")


def read(text: str) -> object:
    return EncryptedFile(text.encode(), json=False).open(IDENTITIES).values


def test_as_it_was_encrypted_it_is_read() -> None:
    assert read(TEXT) == [SAID]


@pytest.mark.parametrize("part", [1, 2, 3])
@given(data=st.data())
def test_no_byte_of_a_value_or_of_the_mac_can_change(part: int, data: st.DataObject) -> None:
    found = data.draw(st.sampled_from([*ENCRYPTED.finditer(TEXT)]))
    at = data.draw(st.integers(found.start(part), found.end(part) - 1))
    new = data.draw(st.sampled_from("ABab01+/=x").filter(lambda sign: sign != TEXT[at]))
    changed = f"{TEXT[:at]}{new}{TEXT[at + 1 :]}"
    if changed[found.start(part) : found.end(part)].rstrip("=")[:-1] == found[part].rstrip("=")[:-1]:
        return  # of the last sign of base64 not all bits count
    with pytest.raises((DamagedFile, UnfitFile)):
        read(changed)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("type:str", "type:int", "no type"),
        ("  user: ENC", "  other: ENC", "another place"),
        ("name: app", "name: other", "does not fit"),
        ("  empty: ''\n", "  empty: ''\n  more: ''\n", None),
        ("  empty: ''\n", "  empty: x\n", "is not encrypted, though it should be"),
        ("  empty: ''\n", "  empty: 7\n", "is not encrypted, though it should be"),
        ("^(data|stringData)$", "^data$", "does not fit"),
        ("lastmodified: '2", "lastmodified: '1", "sops.mac was changed"),
        ("  mac: ENC", "  mac_only_encrypted: true\n  mac: ENC", "does not fit"),
    ],
)
def test_nor_anything_that_the_mac_counts(old: str, new: str, why: str | None) -> None:
    assert old in TEXT
    if why is None:  # an empty text counts for nothing: that is SOPS' own
        assert read(TEXT.replace(old, new))
        return
    with pytest.raises(DamagedFile, match=why):
        read(TEXT.replace(old, new, 1))


def test_values_are_bound_to_their_key_and_their_file() -> None:
    password, user, *_ = (found[0] for found in ENCRYPTED.finditer(TEXT))
    swapped = TEXT.replace(password, "?").replace(user, password).replace("?", user)
    with pytest.raises(DamagedFile, match="another place"):
        read(swapped)
    other = encrypted(SAID, KEY)
    with pytest.raises(DamagedFile, match="another key"):
        read(TEXT.replace(password, next(ENCRYPTED.finditer(other))[0]))
    without = re.sub(r"  user: ENC.*\n", "", TEXT)
    with pytest.raises(DamagedFile, match="does not fit"):
        read(without)


def test_order_counts() -> None:
    lines = TEXT.splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if line.startswith("  password: "))
    lines[at], lines[at + 1] = lines[at + 1], lines[at]
    with pytest.raises(DamagedFile, match="does not fit"):
        read("".join(lines))


def test_for_others_it_is_locked_and_says_for_whom() -> None:
    with pytest.raises(LockedFile) as locked:
        EncryptedFile(TEXT.encode(), json=False).open({})
    assert locked.value.recipients == (KEY.recipient,)


def test_a_data_key_that_is_not_what_sops_has_age_write_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cost of a stanza of scrypt is its sender's to choose."""
    [identity] = IDENTITIES.values()
    monkeypatch.setattr(agekeys.pyrage, "decrypt", lambda *_: pytest.fail("it was opened"))
    body = b"age-encryption.org/v1\n-> scrypt AAAA 30\nAAAA\n--- AAAA\nxxxx"
    many = b"age-encryption.org/v1\n" + b"-> X25519 AAAA\nAAAA\n" * 100 + b"--- AAAA\nx"
    for armored in (armor(body), armor(many), armor(b"x" * 20_000), "AAAA", armor(b"none")):
        with pytest.raises(DamagedFile):
            identity.data_key(armored)


def armor(data: bytes) -> str:
    import base64

    text = base64.b64encode(data).decode()
    return f"-----BEGIN AGE ENCRYPTED FILE-----\n{text}\n-----END AGE ENCRYPTED FILE-----\n"


def test_data_keys_of_other_lengths_are_none() -> None:
    [identity] = IDENTITIES.values()
    with pytest.raises(DamagedFile, match="length"):
        identity.data_key(agekeys.encrypted_for(KEY.recipient, b"short"))
    with pytest.raises(DamagedFile, match="another key"):
        identity.data_key(agekeys.encrypted_for(AgeKey().recipient, b"x" * 32))


def test_a_bad_key_file_is_told_without_its_content() -> None:
    for text in ("AGE-SECRET-KEY-1QQQQ\n", f"{KEY.secret[:-1]}\n", "-----BEGIN AGE ENCRYPTED FILE-----\n"):
        with pytest.raises(BadKeyFile) as bad:
            identities(text)
        assert "line 1" in str(bad.value)
        assert KEY.secret[20:40] not in str(bad.value)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda t: t.replace("  age:", "  pgp:"), "PGP, and only age"),
        (lambda t: t.replace("sops:\n", "sops:\n  shamir_threshold: 2\n"), "several key groups"),
        (lambda t: t.replace("encrypted_regex: ", "encrypted_comment_regex: "), "encrypted_comment_regex"),
        (lambda t: t.replace("encrypted_regex: ", "encrypted_suffix: x\n  encrypted_regex: "), "both given"),
        (lambda t: t.replace("  encrypted_regex: ^(data|stringData)$\n", ""), "kind is encrypted|apiVersion is"),
        (lambda t: t.replace("name: app", "name: &a app"), None),
        (lambda t: t.replace("stringData:", "<<: {a: b}\nstringData:"), "a key is no text"),
    ],
)
def test_what_nobody_could_read_says_why(change: object, why: str | None) -> None:
    text = change(TEXT)  # type: ignore[operator]
    if why is None:
        assert read(text)
        return
    with pytest.raises(UnfitFile, match=why):
        read(text)
