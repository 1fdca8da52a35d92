"""TLS for uvicorn: optional client certificates of the fleet's CA, their names handed to the application.

Used by worker.py. openssl.py does TLS and auth/pki_clients.py judges certificates; here they meet a connection.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from http import HTTPStatus
from typing import Any

from websockets.http11 import Request

from apiserver.auth.peer import Peer
from apiserver.auth.pki_clients import ClientCertificates
from apiserver.connections import Connections, Seat
from apiserver.openssl_channel import Channel
from apiserver.patience import PatientProtocol, PatientWebSocket

log = logging.getLogger(__name__)


class MutualTLSProtocol(PatientProtocol):
    """HTTP/1.1 with `scope["extensions"]["tls"]`: the Peer whose certificate the client showed, None if it showed none.

    Whether it counts is for the application to ask, at each request."""

    def __init__(self, clients: ClientCertificates, connections: Connections, place: Seat, **uvicorns: Any) -> None:
        super().__init__(connections, place, **uvicorns)
        self._clients = clients
        self.ws_protocol_class = partial(MutualTLSWebSocket, clients, connections, place)  # type: ignore[assignment]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # Judged once a connection: all its requests come from the same peer.
        self.extensions["tls"] = peer(transport, self._clients, self.place.host)


class MutualTLSWebSocket(PatientWebSocket):
    """A WebSocket whose scope has the same extension."""

    def __init__(self, clients: ClientCertificates, connections: Connections, place: Seat, **uvicorns: Any) -> None:
        super().__init__(connections, place, **uvicorns)
        self._clients = clients

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if self.response.status_code == HTTPStatus.SWITCHING_PROTOCOLS:
            extensions: dict[str, Any] = self.scope["extensions"]
            extensions["tls"] = peer(self.transport, self._clients, self.place.host)


def peer(transport: asyncio.Transport, clients: ClientCertificates, host: str) -> Peer | None:
    """Whose certificate was shown on this connection. `host`: the client's address, for the log."""
    channel: Channel = transport.get_extra_info("ssl_object")
    try:
        shown = channel.shown()
    except ValueError as error:
        found = Peer(refused=f"it cannot be read: {error}")
    else:
        if shown is None:
            return None
        found = clients.peer(*shown)
    if found.refused:
        log.info("a client certificate from %s does not count: %s", host, found.refused)
    return found
