"""Accepts connections: bounded by address before anything is done for them, TLS in bounded time.

Used by worker.py in place of the event loop's own server, which knows a client's address only once TLS stands. Whoever
comes from a network of proxies says first for whom (proxyprotocol.py); for all others that costs a look at a tuple.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
import ssl
from collections.abc import Callable, Coroutine
from typing import Any

from apiserver import proxyprotocol
from apiserver.connections import Connections, Seat
from apiserver.openssl import ServerTLS
from apiserver.proxyprotocol import NotProxied, Proxied, Proxies

log = logging.getLogger(__name__)

_AT_ONCE = 32
_FULL = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_PAUSE = 0.5
"""Seconds in which others may end, where the system has no more room."""
_FLUSH_SECONDS = 30.0
"""For what was written before the end of a connection, and the client's word."""
_QUIET_SECONDS = 60.0
"""Between two lines of the log about proxies that do not say for whom they come."""


class Listener:
    """On a socket that other processes may accept on, too. Stands for an asyncio.Server."""

    def __init__(
        self,
        listener: socket.socket,
        context: ServerTLS,
        connections: Connections,
        protocol: Callable[[Seat], asyncio.Protocol],
        proxies: Proxies,
    ) -> None:
        listener.setblocking(False)
        self._listener = listener
        self._context = context
        self._connections = connections
        self._protocol = protocol
        self._proxies = proxies
        self._quiet_until = 0.0
        self._loop = asyncio.get_running_loop()
        self._shaking: set[asyncio.Task[None]] = set()
        self._closed = False

    def start(self) -> None:
        if not self._closed:
            self._loop.add_reader(self._listener, self._accept)

    def close(self) -> None:
        """No more connections; those that stand go on, others end."""
        self._closed = True
        self._loop.remove_reader(self._listener)
        for task in self._shaking:
            task.cancel()

    async def wait_closed(self) -> None:
        await asyncio.gather(*self._shaking, return_exceptions=True)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                connection, address = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _FULL:
                    log.error("no connection can be accepted for a while: %s", error)
                    self._loop.remove_reader(self._listener)
                    self._loop.call_later(_PAUSE, self.start)
                    return
                continue  # it has ended already
            connection.setblocking(False)
            host, port = address[:2]
            if self._proxies and self._proxies.have(host):
                self._begin(self._be_told, connection, host, port)
            else:
                self._welcome(connection, host, port)

    def _begin(self, how: Callable[..., Coroutine[Any, Any, None]], *what: Any) -> None:
        task = self._loop.create_task(how(*what))
        self._shaking.add(task)
        task.add_done_callback(self._shaking.discard)

    def _welcome(self, connection: socket.socket, host: str, port: int) -> None:
        place = self._connections.enter(host, port)
        if place is None:
            connection.close()
        else:
            self._begin(self._shake_hands, connection, place, self._connections.settings.head_seconds, "")

    async def _be_told(self, connection: socket.socket, host: str, port: int) -> None:
        """A proxy's connection: for whom it comes, then TLS, all of it within one deadline."""
        seconds = self._connections.settings.head_seconds
        until = self._loop.time() + seconds
        place = self._connections.enter(f"{host}, before a PROXY header,")
        try:
            if place is None or place.refused:
                raise NotProxied("there are too many that have not said for whom they come")
            async with asyncio.timeout(seconds):
                said = proxyprotocol.read(await proxyprotocol.receive(connection))
        except (NotProxied, OSError) as error:  # TimeoutError is one, without a text
            connection.close()
            self._tell(host, str(error) or f"its header did not come within {seconds:g} s")
            return
        except asyncio.CancelledError:
            connection.close()
            raise
        finally:
            if place is not None:
                self._connections.leave(place)
        client = said or Proxied(host, port, "")
        found = self._connections.enter(client.host, client.port)
        if found is None:
            connection.close()
        else:
            await self._shake_hands(connection, found, max(0.001, until - self._loop.time()), client.reached)

    def _tell(self, host: str, why: str) -> None:
        """Not for each: a proxy that is set up without the protocol would fill the log with its health checks."""
        if self._loop.time() >= self._quiet_until:
            self._quiet_until = self._loop.time() + _QUIET_SECONDS
            log.warning("a connection from %s, a network of --proxy-protocol-network, is refused: %s", host, why)

    async def _shake_hands(self, connection: socket.socket, place: Seat, seconds: float, reached: str) -> None:
        """`reached`: the address that the client connected to; "": the one that it has here."""
        try:
            context: ssl.SSLContext = self._context
            if self._context.given is not None:
                context = self._context.at(reached or connection.getsockname()[0])
            await self._loop.connect_accepted_socket(
                lambda: self._protocol(place),
                connection,
                ssl=context,
                ssl_handshake_timeout=seconds,
                ssl_shutdown_timeout=_FLUSH_SECONDS,
            )
        except (OSError, EOFError) as error:
            log.debug("no TLS with %s: %s", place.address, error)
        finally:
            if not place.joined:
                with contextlib.suppress(OSError):
                    connection.close()
                self._connections.leave(place)
