"""uvicorn as an API worker needs it: mutual TLS, bounds and deadlines of connections, watches that end at SIGTERM.

Called by serve.py. Several workers accept on one socket, which their parent has bound.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator

import uvicorn

from apiserver.accepting import Listener
from apiserver.app import App
from apiserver.auth.keys import Keys, Pair
from apiserver.auth.pki_clients import ClientCertificates
from apiserver.connections import Seat
from apiserver.openssl import ServerTLS
from apiserver.proxyprotocol import Proxies
from apiserver.settings import ServerSettings
from apiserver.tls import MutualTLSProtocol, MutualTLSWebSocket

_LAST_WORD_SECONDS = 0.2
_LAST_LOOKS = 20
_OF_CLIENTS = frozenset({"Invalid HTTP request received.", "Unsupported upgrade request."})
_MESSAGE = 64 * 1024
"""Bytes of one from a WebSocket."""


class WorkerServer(uvicorn.Server):
    """uvicorn, but watches end before it waits for connections: they would never end by themselves."""

    def __init__(self, config: uvicorn.Config, app: App, settings: ServerSettings, stop: Callable[[], None]) -> None:
        super().__init__(config)
        keys, more = Keys(settings.keys_dir), () if settings.client_ca_file is None else (settings.client_ca_file,)
        self._connections = app.connections
        self._context = ServerTLS(keys, *more, given=_given(settings))
        self._clients = ClientCertificates(keys.ca, *more)
        self._proxies = Proxies(settings.proxy_networks)
        self._stop = stop
        self.servers = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """In place of uvicorn's, whose servers take any number of connections and wait long for TLS."""
        await self.lifespan.startup()
        for each in sockets or ():
            listener = Listener(each, self._context, self._connections, self._protocol, self._proxies)
            listener.start()
            self.servers.append(listener)  # type: ignore[arg-type]
        self.started = True

    def _protocol(self, place: Seat) -> asyncio.Protocol:
        return MutualTLSProtocol(
            self._clients,
            self._connections,
            place,
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._stop()
        cutting = asyncio.ensure_future(self._cut_silent())
        try:
            await super().shutdown(sockets)
            await self._let_go()
        finally:
            cutting.cancel()

    async def _let_go(self) -> None:
        """What was cut short has an answer on its way; then all ends."""
        for _ in range(_LAST_LOOKS):
            if not self.server_state.connections:
                return
            await asyncio.sleep(_LAST_WORD_SECONDS / 4)
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)

    async def _cut_silent(self) -> None:
        """Ends connections that are closed but for the client's word. A client that keeps one for later without
        listening (Python's do) does not say it, and would be waited for."""
        while True:
            await asyncio.sleep(_LAST_WORD_SECONDS)
            for connection in list(self.server_state.connections):
                transport = connection.transport
                if transport.is_closing() and not transport.get_write_buffer_size():
                    transport.abort()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """uvicorn's own would end the process by the signal itself, before the stores are closed."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self.handle_exit)
        yield


def _given(settings: ServerSettings) -> Pair | None:
    """Files with a certificate besides the server's own. `up` has seen that they fit, and says when they do not."""
    if settings.tls_cert_file is None or settings.tls_private_key_file is None:
        return None
    return Pair(settings.tls_cert_file, settings.tls_private_key_file)


def _is_ours(record: logging.LogRecord) -> bool:
    """Whether a line of the log is about this server. What a client sends is not: it could fill the log with it."""
    return record.getMessage() not in _OF_CLIENTS


def server(app: App, settings: ServerSettings, stop: Callable[[], None]) -> WorkerServer:
    """A server for `app`. `stop` ends its watches."""
    config = uvicorn.Config(
        app,
        http=MutualTLSProtocol,  # made by WorkerServer, with more than uvicorn has to say
        ws=MutualTLSWebSocket,
        # Compression would cost each watch a window of memory, and the event's bytes could not be shared.
        ws_per_message_deflate=False,
        # A watch has nothing to hear from its client.
        ws_max_size=_MESSAGE,
        loop="uvloop",
        lifespan="off",
        interface="asgi3",
        # A header must not say who the client is.
        proxy_headers=False,
        server_header=False,
        access_log=False,
        log_config=None,
        log_level="warning",  # beyond that it logs queries, and of WebSockets all that goes through them
        timeout_keep_alive=settings.idle_seconds,
        timeout_graceful_shutdown=settings.shutdown_seconds,
    )
    config.load()
    logging.getLogger("uvicorn.error").addFilter(_is_ours)
    return WorkerServer(config, app, settings, stop)
