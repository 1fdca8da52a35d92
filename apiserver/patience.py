"""uvicorn's protocols with an end to patience: what each waits for is known, and nothing a client sends grows for ever.

tls.py builds on them. What uvicorn and websockets themselves answer in plain text is a Status here, as all else is.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import sys
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.datastructures import Headers
from websockets.http11 import Response
from websockets.server import ServerProtocol

from apiserver.connections import Connections, Phase, Seat, Waiting
from apiserver.endpoints.errors import status_body
from apiserver.endpoints.exchange import JSON
from apiserver.model.errors import StatusError, bad_request, unavailable
from apiserver.wire import DirectProtocol

_HEAD = 64 * 1024
"""Bytes of a request's head. Of what is neither head nor body (the sizes of chunks, what follows the last) there may be
eight times that, and sixteen for each byte of the body."""
_ACKNOWLEDGED = slice(120, 128)
"""tcpi_bytes_acked in Linux' struct tcp_info."""
_REASONS = {400: "BadRequest", 403: "Forbidden", 405: "MethodNotAllowed", 426: "UpgradeRequired"}


class PatientProtocol(DirectProtocol):
    """HTTP/1.1."""

    def __init__(self, connections: Connections, place: Seat, **uvicorns: Any) -> None:
        super().__init__(**uvicorns)
        self.place = place
        self.stopping = False
        self._connections = connections
        self._received = 0
        self._begun = 0  # received before this message
        self._delivered = 0  # of this message's body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.client = self.place.host, self.place.port
        self._connections.join(self, self.place)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._connections.part(self, self.place)

    def waiting(self) -> Waiting | None:
        cycle = self.cycle
        if self.transport.is_closing():
            return Waiting(Phase.END)
        if self.flow.write_paused:
            return Waiting(Phase.TAKING, _taken(self.transport))
        if cycle is not None and not cycle.response_complete:
            stands = cycle.more_body and cycle.scope is self.scope and not self.flow.read_paused
            return Waiting(Phase.BODY, self._received) if stands else None
        if cycle is None or cycle.scope is not self.scope:
            return Waiting(Phase.HEAD, self._begun)
        return Waiting(Phase.REST if cycle.more_body else Phase.IDLE, id(cycle))

    def overdue(self, phase: Phase) -> None:
        if phase is Phase.HEAD and self._received > self._begun:
            self.refuse(StatusError(408, "Timeout", "the request's head did not come in time"))
        elif phase in (Phase.HEAD, Phase.IDLE, Phase.REST):
            self.transport.close()
        else:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._received += len(data)
        cycle, count = self.cycle, self._received - self._begun
        if self.parser is None or count <= _HEAD:
            return
        if cycle is None or cycle.scope is not self.scope:
            self.refuse(StatusError(431, "RequestHeaderFieldsTooLarge", f"the head is larger than {_HEAD} bytes"))
        elif count > 8 * _HEAD + 17 * self._delivered:
            self.transport.abort()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._begun = self._received
        self._delivered = 0

    def on_body(self, body: bytes) -> None:
        self._delivered += len(body)
        super().on_body(body)

    def shutdown(self) -> None:
        self.stopping = True
        super().shutdown()

    def handle_websocket_upgrade(self) -> None:
        if self.place.refused:
            self.refuse(too_many())
            return
        super().handle_websocket_upgrade()
        self._connections.swap(self, self.transport.get_protocol())  # type: ignore[arg-type]

    def refuse(self, error: StatusError) -> None:
        """Answer and close, where no exchange answers. Behind an answer that is under way nothing can be said."""
        if self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete:
            self.transport.abort()
            return
        body = status_body(error) + b"\n"
        lines = [b"%b: %b\r\n" % header for header in (*self.server_state.default_headers, *_headers(error, body))]
        self.transport.write(b"%b%b\r\n%b" % (STATUS_LINE[error.code], b"".join(lines), body))
        self.transport.close()

    def send_400_response(self, msg: str) -> None:
        if not self.transport.is_closing():
            self.refuse(bad_request(msg))

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        cycle.__class__ = StatusCycle
        super()._start_asgi_task(cycle, _too_many if self.place.refused else app)


class StatusCycle(RequestResponseCycle):
    """One exchange whose application failed or was cut short."""

    async def send_500_response(self) -> None:
        protocol: Any = self.transport.get_protocol()
        await _send(self.send, _stopping() if protocol.stopping else _internal())


class PatientWebSocket(WebSocketsSansIOProtocol):
    """A WebSocket. Pings, and their answers in time, are uvicorn's."""

    def __init__(self, connections: Connections, place: Seat, **uvicorns: Any) -> None:
        super().__init__(**uvicorns)
        self.conn = StatusServer(max_size=self.config.ws_max_size, logger=logging.getLogger("uvicorn.error"))
        self.place = place
        self._connections = connections

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.client = self.place.host, self.place.port

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._connections.part(self, self.place)

    def waiting(self) -> Waiting | None:
        if self.transport.is_closing():
            return Waiting(Phase.END)
        if not self.writable.is_set():
            return Waiting(Phase.TAKING, _taken(self.transport))
        return None

    def overdue(self, _phase: Phase) -> None:
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.handshake_exc is not None and not self.handshake_initiated and not self.transport.is_closing():
            # uvicorn waits on where the request is none for a WebSocket.
            self.handshake_complete = True
            self.transport.write(self.conn.reject(400, str(self.conn.handshake_exc)).serialize())
            self.transport.close()


class StatusServer(ServerProtocol):
    """What a WebSocket is refused with."""

    def reject(self, status: int, text: str) -> Response:
        error = StatusError(int(status), _REASONS.get(int(status), "InternalError"), text.strip())
        body = status_body(error) + b"\n"
        found = super().reject(status, text)
        for name, value in _headers(error, body):
            found.headers.pop(name.decode(), None)
            found.headers[name.decode()] = value.decode()
        return Response(found.status_code, found.reason_phrase, Headers(found.headers), body)


def _taken(transport: asyncio.Transport) -> tuple[int, bytes]:
    """Changes when the other side takes something. What waits here alone would not say so for long: the system holds
    megabytes of a connection."""
    connection: socket.socket = transport.get_extra_info("socket")
    acknowledged = b""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            acknowledged = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)[_ACKNOWLEDGED]
    return transport.get_write_buffer_size(), acknowledged


def _headers(error: StatusError, body: bytes) -> list[tuple[bytes, bytes]]:
    found = [(b"content-type", JSON), (b"content-length", b"%d" % len(body)), (b"connection", b"close")]
    if error.retry_after is not None:
        found.append((b"retry-after", b"%d" % error.retry_after))
    return found


async def _send(send: Any, error: StatusError) -> None:
    body = status_body(error) + b"\n"
    await send({"type": "http.response.start", "status": error.code, "headers": _headers(error, body)})
    await send({"type": "http.response.body", "body": body})


async def _too_many(_scope: Any, _receive: Any, send: Any) -> None:
    await _send(send, too_many())


def too_many() -> StatusError:
    return StatusError(429, "TooManyRequests", "too many connections from one address", retry_after=1)


def _stopping() -> StatusError:
    return unavailable("the server is stopping; please try again")


def _internal() -> StatusError:
    return StatusError(500, "InternalError", "Internal error occurred: see the server's log")
