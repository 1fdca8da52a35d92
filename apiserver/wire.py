"""uvicorn's HTTP/1.1 with a short way to the connection: a whole answer, or a piece of a stream, in one write.

tls.py builds on it; the endpoints find it as `scope["extensions"]["treeplane.direct"]` (exchange.py). The way over
ASGI's `send` stays for everything else: two coroutines and two TLS records for a small answer, and for each event of
each watch a task that wakes up. Both ways keep the same state, so that one request may use both.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

DIRECT = "treeplane.direct"
_JOINED = 64 * 1024
"""Bytes of a body that are copied behind the head: less than a second write costs."""


class DirectProtocol(HttpToolsProtocol):
    """`scope["extensions"]` is one dictionary for all requests of a connection."""

    extensions: dict[str, Any]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.extensions = {DIRECT: self}

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.extensions.pop(DIRECT, None)  # it refers back to this

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = self.extensions

    def reply(self, scope: Any, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> bool:
        """Sends a whole answer, its length among the headers. False: nothing was sent, ASGI has to."""
        cycle = self._ready(scope)
        if cycle is None or cycle.response_started or not cycle.keep_alive or scope["method"] == "HEAD":
            return False
        head = b"%b%b\r\n" % (STATUS_LINE[status], b"".join([b"%b: %b\r\n" % header for header in headers]))
        if head.count(b"\n") != len(headers) + 2 or head.count(b"\r") != len(headers) + 2:
            raise RuntimeError("a header has a line break")
        cycle.response_started = cycle.response_complete = True
        if len(body) <= _JOINED:
            self.transport.write(head + body)
        else:
            self.transport.write(head)
            self.transport.write(body)
        cycle.message_event.set()
        cycle.on_response()
        return True

    def stream(self, scope: Any, data: bytes) -> bool:
        """Sends a piece of an answer that `send` has begun. False: nothing was sent, ASGI has to."""
        cycle = self._ready(scope)
        if cycle is None or not cycle.chunked_encoding:
            return False
        self.transport.write(b"%x\r\n%b\r\n" % (len(data), data))
        return True

    def cut(self) -> None:
        """Ends the connection at once."""
        self.transport.abort()

    def _ready(self, scope: Any) -> RequestResponseCycle | None:
        """The exchange of `scope` if bytes can be written for it now: others of the connection may wait behind it."""
        cycle = self.cycle
        if cycle is None or cycle.scope is not scope or cycle.disconnected or cycle.response_complete:
            return None
        return None if self.flow.write_paused else cycle
