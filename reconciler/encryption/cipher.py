"""One value as SOPS encrypts it: `ENC[AES256_GCM,data:…,iv:…,tag:…,type:…]`.

Called by document and sealing. Each value is bound to its place in the document, so none can be put into another's.
"""

from __future__ import annotations

import base64
import binascii
import os
import re

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from reconciler.encryption.faults import DamagedFile
from reconciler.encryption.scalars import Scalar, said, typed

_FORM = re.compile(r"ENC\[AES256_GCM,data:([A-Za-z0-9+/=]+),iv:([A-Za-z0-9+/=]+),tag:([A-Za-z0-9+/=]+),type:([a-z]+)\]")
_IV, _TAG = 32, 16
_SHORTEST_IV, _LONGEST_IV = 12, 128


def decrypted(text: str, key: bytes, place: str) -> Scalar:
    """What was encrypted. `place`: see place_of; for the MAC the time. Raises DamagedFile."""
    if not text:
        return Scalar("str", "")
    found = _FORM.fullmatch(text)
    if found is None:
        raise DamagedFile("it is not encrypted, though it should be")
    try:
        data, iv, tag = (base64.b64decode(part, validate=True) for part in found.groups()[:3])
    except (binascii.Error, ValueError):
        raise DamagedFile("what is encrypted is damaged") from None
    if len(tag) != _TAG or not _SHORTEST_IV <= len(iv) <= _LONGEST_IV:
        raise DamagedFile("what is encrypted is damaged")
    try:
        plain = AESGCM(key).decrypt(iv, data + tag, place.encode())
    except InvalidTag:
        raise DamagedFile("it was changed, or encrypted for another place or with another key") from None
    return typed(found[4], plain)


def encrypted(value: Scalar, key: bytes, place: str) -> str:
    """The empty text stays as it is."""
    plain = said(value)
    if not plain:
        return ""
    iv = os.urandom(_IV)
    sealed = AESGCM(key).encrypt(iv, plain, place.encode())
    data, tag = sealed[:-_TAG], sealed[-_TAG:]
    parts = (base64.b64encode(part).decode() for part in (data, iv, tag))
    return "ENC[AES256_GCM,data:{},iv:{},tag:{},type:{}]".format(*parts, value.type)


def place_of(path: tuple[str, ...]) -> str:
    """What a value is bound to: the keys that lead to it; items of a list have none."""
    return ":".join(path) + ":"
