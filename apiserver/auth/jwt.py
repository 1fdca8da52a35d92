"""JSON Web Tokens with ES256 signatures, and nothing else of JOSE. Which claims count is accounts.py's."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import orjson

from apiserver.auth.pki import TokenSigner

Claims = dict[str, Any]

ALGORITHM = "ES256"
_LONGEST = 16_384
"""Characters; ours take about 1,000."""


def encode(signer: TokenSigner, claims: Claims) -> str:
    head = orjson.dumps({"alg": ALGORITHM, "kid": signer.key_id})
    signed = f"{_encoded(head)}.{_encoded(orjson.dumps(claims))}"
    return f"{signed}.{_encoded(signer.sign(signed.encode()))}"


def decode(signer: TokenSigner, token: str) -> Claims | None:
    """The claims of a token that one of our keys has signed, else None. Says nothing about time or audience."""
    if len(token) > _LONGEST or token.count(".") != 2:
        return None
    head, body, signature = token.split(".")
    try:
        # The head is read for the key alone. Which algorithm it is, we know: a token does not choose.
        known = orjson.loads(_decoded(head))
        if known.get("alg") != ALGORITHM:
            return None
        if not signer.verify(str(known.get("kid")), f"{head}.{body}".encode(), _decoded(signature)):
            return None
        claims = orjson.loads(_decoded(body))
    except (ValueError, AttributeError, UnicodeEncodeError, binascii.Error):
        return None
    return claims if isinstance(claims, dict) else None


def from_base64(text: str) -> bytes:
    """Of the plain alphabet, as Secrets use it. Raises ValueError."""
    return base64.b64decode(text, validate=True)


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
