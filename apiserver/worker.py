"""uvicorn as an API worker needs it: mutual TLS, watches that end at SIGTERM, an end together with the parent.

Called by serve.py. Several workers accept on one socket, which their parent has bound.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from functools import partial

import uvicorn

from apiserver.app import ASGI
from apiserver.auth.keys import Keys
from apiserver.auth.pki_clients import ClientCertificates
from apiserver.openssl import ServerTLS
from apiserver.settings import ServerSettings
from apiserver.tls import MutualTLSProtocol, MutualTLSWebSocket

_KEEP_ALIVE_SECONDS = 90
"""Longer than clients keep idle connections (Go: 90 s from the last answer), so that they close first."""


_LAST_WORD_SECONDS = 0.2


class WorkerServer(uvicorn.Server):
    """uvicorn, but watches end before it waits for connections: they would never end by themselves."""

    def __init__(self, config: uvicorn.Config, stop: Callable[[], None], parent: int | None) -> None:
        super().__init__(config)
        self._stop = stop
        self._parent = parent

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._parent is not None:
            asyncio.get_running_loop().add_reader(self._parent, self._parent_spoke, self._parent)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._stop()
        cutting = asyncio.ensure_future(self._cut_silent())
        try:
            await super().shutdown(sockets)
        finally:
            cutting.cancel()

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

    def _parent_spoke(self, parent: int) -> None:
        """The parent never writes; readable means that it is gone, however it went."""
        with contextlib.suppress(BlockingIOError):
            if os.read(parent, 1024):
                return
        asyncio.get_running_loop().remove_reader(parent)
        self.should_exit = True


def server(app: ASGI, settings: ServerSettings, stop: Callable[[], None], parent: int | None = None) -> WorkerServer:
    """A server for `app`. `stop` ends its watches; `parent` is a pipe whose end says that the parent is gone."""
    keys = Keys(settings.keys_dir)
    clients = ClientCertificates(keys.ca)
    config = uvicorn.Config(
        app,
        http=partial(MutualTLSProtocol, clients),  # type: ignore[arg-type]
        ws=partial(MutualTLSWebSocket, clients),  # type: ignore[arg-type]
        # Compression would cost each watch a window of memory, and the event's bytes could not be shared.
        ws_per_message_deflate=False,
        loop="uvloop",
        lifespan="off",
        interface="asgi3",
        # A header must not say who the client is.
        proxy_headers=False,
        server_header=False,
        access_log=False,
        log_config=None,
        log_level=settings.log_level,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=settings.shutdown_seconds,
    )
    config.load()
    config.ssl = ServerTLS(keys)
    return WorkerServer(config, stop, parent)
