"""Accepts connections: bounded by address before anything is done for them, TLS in bounded time.

Used by worker.py in place of the event loop's own server, which knows a client's address only once TLS stands.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
import ssl
from collections.abc import Callable

from apiserver.connections import Connections, Seat

log = logging.getLogger(__name__)

_AT_ONCE = 32
_FULL = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_PAUSE = 0.5
"""Seconds in which others may end, where the system has no more room."""
_FLUSH_SECONDS = 30.0
"""For what was written before the end of a connection, and the client's word."""


class Listener:
    """On a socket that other processes may accept on, too. Stands for an asyncio.Server."""

    def __init__(
        self,
        listener: socket.socket,
        context: ssl.SSLContext,
        connections: Connections,
        protocol: Callable[[Seat], asyncio.Protocol],
    ) -> None:
        listener.setblocking(False)
        self._listener = listener
        self._context = context
        self._connections = connections
        self._protocol = protocol
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
            place = self._connections.enter(address[0])
            if place is None:
                connection.close()
                continue
            connection.setblocking(False)
            task = self._loop.create_task(self._shake_hands(connection, place))
            self._shaking.add(task)
            task.add_done_callback(self._shaking.discard)

    async def _shake_hands(self, connection: socket.socket, place: Seat) -> None:
        try:
            await self._loop.connect_accepted_socket(
                lambda: self._protocol(place),
                connection,
                ssl=self._context,
                ssl_handshake_timeout=self._connections.settings.head_seconds,
                ssl_shutdown_timeout=_FLUSH_SECONDS,
            )
        except (OSError, EOFError) as error:
            log.debug("no TLS with %s: %s", place.address, error)
        finally:
            if not place.joined:
                with contextlib.suppress(OSError):
                    connection.close()
                self._connections.leave(place)
