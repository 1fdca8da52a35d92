"""TLS for uvicorn: optional client certificates of the fleet's CA, their names handed to the application.

Used by worker.py. uvicorn verifies a certificate but does not tell the application whose it is; this protocol does.
"""

from __future__ import annotations

import asyncio
import ssl
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request

from apiserver.auth.pki import Keys
from apiserver.wire import DirectProtocol


class MutualTLSProtocol(DirectProtocol):
    """HTTP/1.1 with `scope["extensions"]["tls"]`: {"user", "groups"} of the verified certificate, or None."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # Read once a connection: all its requests come from the same peer.
        self.extensions["tls"] = peer_names(transport.get_extra_info("ssl_object"))


class MutualTLSWebSocket(WebSocketsSansIOProtocol):
    """A WebSocket whose scope has the same extension."""

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if self.response.status_code == HTTPStatus.SWITCHING_PROTOCOLS:
            extensions: dict[str, Any] = self.scope["extensions"]
            extensions["tls"] = peer_names(self.transport.get_extra_info("ssl_object"))


def peer_names(connection: ssl.SSLObject | None) -> dict[str, Any] | None:
    """Common name and organizations of the peer's certificate, which the handshake has verified against the CA."""
    certificate: Any = connection.getpeercert() if connection else None
    if not certificate:
        return None
    names: dict[str, list[str]] = {}
    for part in certificate.get("subject", ()):
        for key, value in part:
            names.setdefault(key, []).append(value)
    return {"user": names.get("commonName", [""])[0], "groups": names.get("organizationName", [])}


def server_context(keys: Keys) -> ssl.SSLContext:
    """TLS 1.2 and newer with the server's certificate; a client may show one of our CA's, and only of that."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(keys.server.certificate, keys.server.key)
    context.load_verify_locations(keys.ca)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.set_alpn_protocols(["http/1.1"])
    return context
