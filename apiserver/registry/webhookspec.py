"""What a CustomResourceDefinition says of the webhook that converts its objects. Data, read from `spec.conversion`."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]

WEBHOOK = "Webhook"


@dataclass(frozen=True, slots=True)
class WebhookService:
    """A Service of the same workspace. `path` begins with a slash."""

    namespace: str
    name: str
    port: int
    path: str


@dataclass(frozen=True, slots=True)
class Conversion:
    """Either `url` or `service` says where. `reviews`: the versions of ConversionReview that it reads, best first.
    `ca`: PEM, b"" for none."""

    definition: str
    reviews: tuple[str, ...]
    url: str = ""
    service: WebhookService | None = None
    ca: bytes = b""


def conversion_of(spec: Object) -> Conversion | None:
    """Of a definition's spec that is valid; None if no webhook converts."""
    conversion = spec.get("conversion") or {}
    if conversion.get("strategy") != WEBHOOK:
        return None
    webhook = conversion.get("webhook") or {}
    client = webhook.get("clientConfig") or {}
    service = client.get("service")
    return Conversion(
        f"{spec['names']['plural']}.{spec['group']}",
        tuple(webhook.get("conversionReviewVersions") or ()),
        client.get("url") or "",
        _service(service) if service else None,
        _decoded(client.get("caBundle") or ""),
    )


def _service(found: Object) -> WebhookService:
    return WebhookService(found.get("namespace") or "", found.get("name") or "", found.get("port") or 443,
                   found.get("path") or "/")  # fmt: skip


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text).strip()
    except (binascii.Error, ValueError):
        return b""
