"""age: identities out of key files, data keys out of what was encrypted for one, and whole files that are encrypted for
one, piece by piece. The only module that knows pyrage.

Called by keyring and document, and for backups. A stranger wrote the data keys that are decrypted here, so what that
may cost is bounded before pyrage sees it: size, stanzas, and none of the kind whose cost the sender chooses (scrypt).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import BinaryIO

import pyrage

from reconciler.encryption.faults import DamagedFile, UnfitFile

_SECRET = "AGE-SECRET-KEY-1"
_BEGIN, _END = "-----BEGIN AGE ENCRYPTED FILE-----", "-----END AGE ENCRYPTED FILE-----"
_VERSION, _STANZA, _HEADER_END = b"age-encryption.org/v1", b"-> ", b"---"
_SCRYPT = b"scrypt"
_LONGEST, _MOST_STANZAS = 16 * 1024, 32
"""Bytes of an encrypted data key (600 are usual), and stanzas of it (sops writes one)."""
KEY_LENGTH = 32


class BadKeyFile(Exception):
    """The text says what is wrong, and quotes nothing of the file."""


class AgeIdentity:
    """`recipient`: its public half, like `age1…`."""

    def __init__(self, text: str) -> None:
        """Raises BadKeyFile."""
        try:
            self._secret = pyrage.x25519.Identity.from_str(text)
        except pyrage.IdentityError:
            raise BadKeyFile("it is no secret key of age's") from None
        self.recipient = str(self._secret.to_public())

    def decrypt(self, source: BinaryIO, target: BinaryIO) -> None:
        """All of a file that was encrypted for this identity. What was written to `target` counts only once this
        returns. Raises DamagedFile for what is cut off, changed, or for another identity."""
        kept = _Kept(target)
        try:
            pyrage.decrypt_io(source, kept, [self._secret])
        except (pyrage.DecryptError, OSError) as error:
            kept.raise_own()
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise DamagedFile(f"it is not encrypted for {self.recipient}, is cut off, or was changed") from None

    def data_key(self, armored: str) -> bytes:
        """Out of what was encrypted for this identity. Raises DamagedFile."""
        try:
            found = pyrage.decrypt(_checked(armored), [self._secret])
        except pyrage.DecryptError:
            raise DamagedFile(
                "its data key was encrypted for another key than the one that it names, or is damaged"
            ) from None
        if len(found) != KEY_LENGTH:
            raise DamagedFile("its data key has another length than SOPS gives them")
        return bytes(found)


def identities(text: str) -> list[AgeIdentity]:
    """Of a key file, as age-keygen writes it. Raises BadKeyFile."""
    out = []
    for number, line in enumerate(text.splitlines(), 1):
        said = line.strip()
        if not said or said.startswith("#"):
            continue
        if not said.startswith(_SECRET):
            raise BadKeyFile(f"line {number} is no secret key of age's, which begins with {_SECRET}")
        try:
            out.append(AgeIdentity(said))
        except BadKeyFile as bad:
            raise BadKeyFile(f"line {number}: {bad}") from None
    return out


def encrypted_for(recipient: str, key: bytes) -> str:
    """A data key, armored as sops has it. Raises UnfitFile for what is no recipient."""
    try:
        return str(pyrage.encrypt(key, [pyrage.x25519.Recipient.from_str(recipient)], armored=True), "ascii")
    except pyrage.RecipientError:
        raise UnfitFile(f"{recipient!r} is no recipient of age's, which begins with age1") from None


def encrypt(recipient: str, source: BinaryIO, target: BinaryIO) -> None:
    """All of `source`, as age files are. Raises UnfitFile for what is no recipient, and quotes none: somebody may give
    his secret key."""
    try:
        public = pyrage.x25519.Recipient.from_str(recipient)
    except pyrage.RecipientError:
        raise UnfitFile("that is no recipient of age's, which begins with age1: the public half of a key") from None
    kept = _Kept(target)
    try:
        pyrage.encrypt_io(source, kept, [public])
    except pyrage.EncryptError:
        kept.raise_own()
        raise


class _Kept:
    """A file that remembers its own error, which pyrage turns into a text."""

    def __init__(self, target: BinaryIO) -> None:
        self._target = target
        self._error: OSError | None = None

    def write(self, data: bytes) -> int:
        try:
            return self._target.write(data)
        except OSError as error:
            self._error = error
            raise

    def flush(self) -> None:
        self._target.flush()

    def raise_own(self) -> None:
        if self._error is not None:
            raise self._error


def are_recipients(texts: Iterable[str]) -> bool:
    try:
        return bool([pyrage.x25519.Recipient.from_str(text) for text in texts])
    except pyrage.RecipientError:
        return False


def _checked(armored: str) -> bytes:
    """The bytes within the armor. Raises DamagedFile."""
    text = armored.strip()
    if len(text) > _LONGEST or not text.startswith(_BEGIN) or not text.endswith(_END):
        raise DamagedFile("its data key is not what age writes")
    try:
        data = base64.b64decode("".join(text.removeprefix(_BEGIN).removesuffix(_END).split()), validate=True)
    except (binascii.Error, ValueError):
        raise DamagedFile("its data key is not what age writes") from None
    version, *lines = data.split(b"\n")
    stanzas = []
    for line in lines:
        if line.startswith(_HEADER_END):
            break
        if line.startswith(_STANZA):
            stanzas.append(line.removeprefix(_STANZA).split(b" ")[0])
    if version != _VERSION or not stanzas or len(stanzas) > _MOST_STANZAS or _SCRYPT in stanzas:
        raise DamagedFile("its data key is not what sops has age write")
    return data
