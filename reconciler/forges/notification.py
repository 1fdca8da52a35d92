"""A JSON document that is posted to somebody's URL, signed: a webhook.

Called by controllers/commithook. Whoever gets it knows by the signature that it is ours and whole, and by its id
whether it came before. The signature is the HMAC-SHA256 of the body's bytes with a secret that both know.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final
from urllib.parse import urlsplit

from reconciler.forges.address import checked
from reconciler.forges.errors import ForgeError
from reconciler.forges.wire import SENDING, ForgePatience, Post, Wire, asked_to_wait

SIGNATURE: Final = "X-Treeplane-Signature-256"
EVENT: Final = "X-Treeplane-Event"
DELIVERY: Final = "X-Treeplane-Delivery"


def signature(body: bytes, secret: str) -> str:
    return f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}"


class Notified:
    """Who is at `url`. Messages name its host alone: what stands behind that may be a secret."""

    def __init__(self, url: str, patience: ForgePatience | None = None) -> None:
        """Raises NotSaid."""
        self._url = checked(url)
        parts = urlsplit(self._url)
        self._host = f"{parts.scheme}://{parts.hostname}"
        self._wire = Wire(self._url, patience or ForgePatience())

    def post(self, event: str, delivery: str, body: bytes, secret: str) -> None:
        """Once. Raises ForgeError, also for what is no answer that begins with 2."""
        heads = {"Content-Type": "application/json", EVENT: event, DELIVERY: delivery}
        try:
            answer = self._wire.sent(Post("POST", self._url, body, heads, {SIGNATURE: signature(body, secret)}))
        except SENDING as error:
            raise ForgeError(f"{self._host} does not answer: {type(error).__name__}") from None
        if answer.status // 100 != 2:
            text = f"{self._host} answers {answer.status} to a notification"
            raise ForgeError(text, status=answer.status, after=asked_to_wait(answer.headers))
