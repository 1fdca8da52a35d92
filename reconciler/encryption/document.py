"""A file that SOPS encrypted, all its documents together, as one data key and one MAC hold for them.

Called by whoever has the keys. What it reads stays with the caller: nothing is remembered, and no text of an error
quotes a value.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apiserver.kubeyaml.scalars import normal
from reconciler.encryption.agekeys import AgeIdentity
from reconciler.encryption.cipher import decrypted, place_of
from reconciler.encryption.faults import DamagedFile, LockedFile, UnfitFile
from reconciler.encryption.metadata import REMEDY, FileMetadata, metadata_of
from reconciler.encryption.scalars import Scalar, said
from reconciler.encryption.tree import Documents, Leaf

Object = dict[str, Any]

_ONLY_ENCRYPTED = hashlib.sha256(b"sops").digest()
"""What a MAC begins with that counts the encrypted values alone."""


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """`key`: the data key; `values`: the documents without `sops`, decrypted."""

    key: bytes
    values: list[Object]


class EncryptedFile:
    """`json`: it is JSON. What nobody could read here is found out without keys, and raises UnfitFile."""

    def __init__(self, data: bytes, *, json: bool) -> None:
        self._documents = Documents(data, json=json)
        self.metadata: FileMetadata = metadata_of(self._documents.metadata())
        hidden = self.metadata.selection.hidden()
        if hidden:
            raise UnfitFile(f"{hidden} is encrypted, so nobody can tell which object it is", REMEDY)

    @property
    def recipients(self) -> tuple[str, ...]:
        """For whom it is encrypted."""
        return tuple(self.metadata.keys)

    def open(self, identities: Mapping[str, AgeIdentity]) -> OpenedFile:
        """With the first key that fits; `identities`: by recipient. Raises LockedFile, DamagedFile and UnfitFile."""
        key = self._key(identities)
        reading = _Reading(self.metadata, key)
        opened = OpenedFile(key, self._documents.values(reading))
        try:
            told = decrypted(self.metadata.mac, key, self.metadata.modified).text
        except DamagedFile:
            raise DamagedFile("sops.mac was changed, or is another file's", _MENDING) from None
        if not hmac.compare_digest(told.encode(), reading.mac.encode()):
            text = "sops.mac does not fit: values were added, removed, reordered or edited without sops"
            raise DamagedFile(text, _MENDING)
        return opened

    def as_it_stands(self) -> list[Object]:
        """The documents without `sops`, encrypted. Raises UnfitFile."""
        return self._documents.values(lambda leaf: leaf.here)

    def mac(self, key: bytes) -> str:
        """What the MAC should be, of what stands in the file. Raises DamagedFile and UnfitFile."""
        reading = _Reading(self.metadata, key)
        self._documents.values(reading)
        return reading.mac

    def _key(self, identities: Mapping[str, AgeIdentity]) -> bytes:
        for recipient, sealed in self.metadata.keys.items():
            if recipient in identities:
                return identities[recipient].data_key(sealed)
        raise LockedFile(self.recipients)


_MENDING = "take the file as it was committed last, and edit it with sops"


class _Reading:
    """Decrypts leaves in their order, and counts them."""

    def __init__(self, metadata: FileMetadata, key: bytes) -> None:
        self._metadata, self._key = metadata, key
        self._digest = hashlib.sha512(_ONLY_ENCRYPTED if metadata.mac_only_encrypted else b"")

    @property
    def mac(self) -> str:
        return self._digest.hexdigest().upper()

    def __call__(self, leaf: Leaf) -> Any:
        if leaf.value is None:
            return None
        hidden = self._metadata.selection(leaf.path)
        value = self._opened(leaf, leaf.value) if hidden else leaf.value
        if hidden or not self._metadata.mac_only_encrypted:
            self._digest.update(said(value))
        return _as_json(value) if hidden else leaf.here

    def _opened(self, leaf: Leaf, sealed: Scalar) -> Scalar:
        field = ".".join(leaf.path)
        try:
            if sealed.type != "str":
                raise DamagedFile("it is not encrypted, though it should be")
            value = decrypted(sealed.text, self._key, place_of(leaf.path))
            if value.type == "comment":
                raise DamagedFile("a comment stands where a value should be")
        except DamagedFile as fault:
            raise DamagedFile(f"{field}: {fault.message}", fault.hint or _MENDING, leaf.line) from None
        return value


def _as_json(value: Scalar) -> Any:
    if value.type == "int":
        return normal(int(value.text))
    if value.type == "float":
        return normal(float(value.text))
    return value.text == "True" if value.type == "bool" else value.text
