"""A server at whose root one workspace stands: requests get the workspace's path in front and go on to Treeplane.

The suite asks for paths below the server's root (`kubectl get --raw`, `kubectl proxy`, curl), as one does of a cluster.
Started by __main__.py, in a thread. Only requests are read, as far as it takes to find the next one; answers, and
everything after an upgrade, pass as they are.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

_PIECE = 1 << 16
_CLIENT_GONE = (OSError, asyncio.IncompleteReadError)


class Front:
    """Serves on a free port of 127.0.0.1, by TLS with the given certificate, what `port` serves below `prefix`."""

    def __init__(self, port: int, prefix: str, certificate: Path, key: Path) -> None:
        self._upstream_port = port
        self._prefix = prefix.encode()
        self._served = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._served.load_cert_chain(certificate, key)
        self._upstream = ssl.create_default_context(cafile=certificate.with_name("ca.crt"))

    @contextlib.contextmanager
    def running(self) -> Iterator[int]:
        """The port."""
        loop = asyncio.new_event_loop()
        start = asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._served, limit=1 << 20)
        server = loop.run_until_complete(start)
        thread = threading.Thread(target=loop.run_forever, daemon=True)
        thread.start()
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.run_until_complete(_end(asyncio.all_tasks(loop)))
            loop.close()

    async def _accept(self, client: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        with contextlib.suppress(*_CLIENT_GONE, asyncio.CancelledError):
            server, requests = await asyncio.open_connection("127.0.0.1", self._upstream_port, ssl=self._upstream)
            back = asyncio.create_task(_copy(server, answers))
            with contextlib.suppress(*_CLIENT_GONE):
                while await self._forward(client, requests):
                    pass
            requests.close()
            await back

    async def _forward(self, client: asyncio.StreamReader, requests: asyncio.StreamWriter) -> bool:
        """One request; whether another may follow."""
        head = await client.readuntil(b"\r\n\r\n")
        method, rest = head.split(b" ", 1)
        requests.write(method + b" " + self._prefix + rest)
        fields = [line.partition(b":") for line in head.lower().split(b"\r\n")[1:]]
        headers = {name: value.strip() for name, _, value in fields}
        if b"upgrade" in headers:
            await _copy(client, requests)
            return False
        if headers.get(b"transfer-encoding") == b"chunked":
            await _chunks(client, requests)
        else:
            requests.write(await client.readexactly(int(headers.get(b"content-length", 0))))
        await requests.drain()
        return True


async def _end(connections: set[asyncio.Task[None]]) -> None:
    for connection in connections:
        connection.cancel()
    await asyncio.gather(*connections, return_exceptions=True)


async def _chunks(client: asyncio.StreamReader, requests: asyncio.StreamWriter) -> None:
    size = -1
    while size:
        line = await client.readuntil(b"\r\n")
        size = int(line.split(b";")[0], 16)
        requests.write(line + await client.readexactly(size + 2))


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(*_CLIENT_GONE):
        while piece := await source.read(_PIECE):
            target.write(piece)
            await target.drain()
    target.close()
