"""One client for any Kubernetes server: requests over a few TLS connections, watches over many, and what they cost.

api.py measures Treeplane and a real kube-apiserver with it, watches.py many open watches. HTTP/1.1 on uvloop with
uvicorn's parser, so that the client takes as little as possible of the machine that it shares with the server.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httptools
from support.plane import Credentials

JSON = "application/json"
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Server:
    """`path`: in front of every request's. `pids`: of all processes whose work counts."""

    name: str
    credentials: Credentials
    path: str
    pids: Callable[[], Sequence[int]]

    def cpu(self) -> float:
        """Seconds spent so far."""
        return sum(_cpu(pid) for pid in self.pids())

    def request(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        kind: str = JSON,
        accept: str = JSON,
        who: tuple[str, str] | None = None,
    ) -> bytes:
        """`who`: a user and a group of his that are acted for."""
        headers = {"Host": self.credentials.host, "Accept": accept, **self.credentials.headers}
        if who is not None:
            headers |= dict(zip(("Impersonate-User", "Impersonate-Group"), who, strict=True))
        if body:
            headers |= {"Content-Type": kind, "Content-Length": str(len(body))}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"{method} {self.path}{path} HTTP/1.1\r\n{lines}\r\n".encode() + body

    async def connect(self) -> Connection:
        at = self.credentials
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(Connection, at.host, at.port, ssl=at.tls, server_hostname=at.host)
        return connection


def _cpu(pid: int) -> float:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(stat[11]) + int(stat[12])) / _TICKS


class Connection(asyncio.Protocol):
    """One request at a time, or one watch."""

    def __init__(self) -> None:
        self.status = 0
        self.size = 0
        self.lines = 0
        """Events of a watch so far."""
        self.body: list[bytes] | None = None
        """Kept only if set to a list."""
        self.on_lines: Callable[[], None] | None = None
        self._parser: httptools.HttpResponseParser
        self._done: asyncio.Future[int] | None = None
        self._begun: asyncio.Future[int] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]
        self._parser = httptools.HttpResponseParser(self)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        for waiting in (self._done, self._begun):
            if waiting is not None and not waiting.done():
                waiting.set_exception(ConnectionResetError(f"the server closed the connection: {exc}"))

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        if self._begun is not None and not self._begun.done():
            self._begun.set_result(self.status)

    def on_body(self, data: bytes) -> None:
        self.size += len(data)
        if self.body is not None:
            self.body.append(data)
        if self.on_lines is not None:
            self.lines += data.count(b"\n")
            self.on_lines()

    def on_message_complete(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        if self._done is not None and not self._done.done():
            self._done.set_result(self.status)

    async def send(self, request: bytes) -> int:
        """The status of the whole answer."""
        self.size = 0
        self._done = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return await self._done

    async def watch(self, request: bytes, on_lines: Callable[[], None]) -> int:
        """The status, once it stands; events are counted in `lines` from then on."""
        self.on_lines = on_lines
        self._begun = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return await self._begun


@dataclass(slots=True)
class Result:
    """Of many requests of one sort. Times in seconds, `cpu` the server's over all of them."""

    count: int
    seconds: float
    cpu: float
    size: int = 0
    latencies: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return self.count / self.seconds

    @property
    def cost(self) -> float:
        """CPU seconds of the server per 1,000."""
        return self.cpu / self.count * 1000


async def load(server: Server, requests: Sequence[bytes], connections: int) -> Result:
    """All `requests`, over that many connections. Raises RuntimeError for any other status than 200 and 201."""
    pool = [await server.connect() for _ in range(connections)]
    pending = iter(requests)
    result = Result(len(requests), 0, 0)

    async def work(connection: Connection) -> None:
        for request in pending:
            begin = time.perf_counter()
            connection.body = []
            status = await connection.send(request)
            result.latencies.append(time.perf_counter() - begin)
            result.size = connection.size
            if status not in (200, 201):
                raise RuntimeError(f"{server.name}: {status} to {request[:200]!r}: {b''.join(connection.body)[:500]!r}")

    cpu, begin = server.cpu(), time.perf_counter()
    await asyncio.gather(*(work(c) for c in pool))
    result.seconds, result.cpu = time.perf_counter() - begin, server.cpu() - cpu
    for connection in pool:
        connection.transport.close()
    return result


class Watches:
    """Many watches of one path. `reached(n)` waits until each has seen n events."""

    def __init__(self, server: Server, request: bytes) -> None:
        self._server = server
        self._request = request
        self.connections: list[Connection] = []
        self._wanted = 0
        self._short = 0
        self._reached: asyncio.Future[None] | None = None

    async def open(self, count: int, at_once: int = 50) -> None:
        """Raises RuntimeError where one is refused."""
        while len(self.connections) < count:
            number = min(at_once, count - len(self.connections))
            new = await asyncio.gather(*(self._server.connect() for _ in range(number)))
            statuses = await asyncio.gather(*(c.watch(self._request, self._counter(c)) for c in new))
            if set(statuses) != {200}:
                raise RuntimeError(f"{self._server.name}: watches answered with {set(statuses)}")
            self.connections += new

    def _counter(self, connection: Connection) -> Callable[[], None]:
        seen = 0

        def count() -> None:
            nonlocal seen
            before, seen = seen, connection.lines
            if before < self._wanted <= seen:
                self._short -= 1
                if self._short == 0 and self._reached is not None and not self._reached.done():
                    self._reached.set_result(None)

        return count

    def expect(self, events: int) -> asyncio.Future[None]:
        """Call it before the events happen; the future is done when every watch has seen that many."""
        self._wanted = events
        self._short = sum(1 for c in self.connections if c.lines < events)
        self._reached = asyncio.get_running_loop().create_future()
        return self._reached

    def close(self) -> None:
        for connection in self.connections:
            connection.transport.close()
        self.connections.clear()
