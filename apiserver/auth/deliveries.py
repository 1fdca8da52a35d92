"""Whether a request comes from who knows a secret, by the signatures that forges put on what their webhooks deliver.

Called by endpoints/ringing. Which forge it is does not matter: any of these that fits will do, all of one secret.

| header | of | what it is |
|---|---|---|
| X-Hub-Signature-256 | GitHub, Gitea, Forgejo, anybody | `sha256=` and HMAC-SHA256 of the body, hexadecimal |
| X-Hub-Signature | Bitbucket | the same; as GitHub has it, with SHA-1, it fits nothing |
| X-Gitea-Signature, X-Forgejo-Signature | Gitea, Forgejo | the same without `sha256=` |
| webhook-signature | GitLab's signing token, Standard Webhooks | `v1,` and HMAC-SHA256 of id, time and body, base64 |
| X-Gitlab-Token | GitLab's secret token | the secret itself |

The body passes through and is not kept. A delivery that somebody sends once more fits again: whoever calls this must
do nothing that matters to do twice.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable
from pathlib import Path

from apiserver.secretfile import SecretFile

_LEAST = 16
"""Characters of a secret: whoever sees one delivery can guess at it for as long as he likes."""
_HEXADECIMAL = {
    b"x-hub-signature-256": b"sha256=",
    b"x-hub-signature": b"sha256=",
    b"x-gitea-signature": b"",
    b"x-forgejo-signature": b"",
}
_TOKEN = b"x-gitlab-token"
_STANDARD, _STANDARD_ID, _STANDARD_TIME = b"webhook-signature", b"webhook-id", b"webhook-timestamp"
_STANDARD_KEY = "whsec_"
_MOST = 8
"""Signatures that one header may have: of several secrets, while they are exchanged."""


def secret_file(path: Path) -> SecretFile:
    return SecretFile(path, "--webhook-secret-file", _LEAST)


class Delivery:
    """One request: `take` all of its body, then `fits`. Every comparison takes the same time whatever it finds."""

    def __init__(self, headers: Iterable[tuple[bytes, bytes]], secret: str) -> None:
        """`headers`: with names in lower case."""
        said = dict(headers)
        self._secret = secret.encode()
        self._token = said.get(_TOKEN)
        self._plain = [
            value.removeprefix(start)
            for name, start in _HEXADECIMAL.items()
            if (value := said.get(name)) is not None and value.startswith(start)
        ]
        self._standard = said.get(_STANDARD, b"").split()[:_MOST] if _STANDARD_ID in said else []
        self._hash = hmac.new(self._secret, digestmod=hashlib.sha256)
        begins = b"%b.%b." % (said.get(_STANDARD_ID, b""), said.get(_STANDARD_TIME, b""))
        self._standard_hash = hmac.new(_standard_key(secret), begins, hashlib.sha256)

    @property
    def is_signed(self) -> bool:
        """Whether there is anything that could fit."""
        return self._token is not None or bool(self._plain or self._standard)

    def take(self, part: bytes) -> None:
        """Of the body, in order."""
        if self._plain:
            self._hash.update(part)
        if self._standard:
            self._standard_hash.update(part)

    def fits(self) -> bool:
        # Of what is compared both are hashed, so that nothing tells how long the secret is.
        found = self._token is not None and hmac.compare_digest(_hashed(self._token), _hashed(self._secret))
        wanted = self._hash.hexdigest().encode()
        for signature in self._plain:
            found |= hmac.compare_digest(signature.lower(), wanted)
        wanted = b"v1," + base64.b64encode(self._standard_hash.digest())
        for signature in self._standard:
            found |= hmac.compare_digest(signature, wanted)
        return found


def _hashed(text: bytes) -> bytes:
    return hashlib.sha256(text).digest()


def _standard_key(secret: str) -> bytes:
    """Such a secret is base64 behind `whsec_`; another is taken as it is."""
    if secret.startswith(_STANDARD_KEY):
        try:
            return base64.b64decode(secret.removeprefix(_STANDARD_KEY), validate=True)
        except binascii.Error:
            pass
    return secret.encode()
