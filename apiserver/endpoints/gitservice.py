"""git's smart HTTP protocol over git's own programs: a request streamed in, an answer streamed out.

Called by git.py, which has decided that the request may pass. What is said is git's; here are only pipes, and what ends
them: a client that went away (one that stands still is cut off, see connections.py), a push that is too large.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import NamedTuple

from apiserver.endpoints.exchange import TEXT, Exchange, Headers
from apiserver.endpoints.gitbody import Commands, commands, pieces, refusal
from apiserver.endpoints.gitprocess import PIECE, ProcessBounds, running
from apiserver.endpoints.gitpushes import WrittenPush
from apiserver.endpoints.pushreport import HeldReport
from apiserver.gitvouch import variables
from apiserver.model.errors import StatusError

log = logging.getLogger(__name__)

PUSH = "receive-pack"
SERVICES = ("upload-pack", PUSH)
_NEGOTIATION = 64 * 1024 * 1024
"""Bytes of a fetch's request: 64 for each commit that the client names."""
_DROPPED = 4
"""How many times what a push may hold is read from one that holds more, so that its client hears of it."""
_FINISH_SECONDS = 600
"""How long a push that is all here may take after its client went away."""
_COMPLAINTS = 4 * 1024
_REFS = 1000
"""That one push may be about: each is a file, and the hook's question."""
_MEMORY = 2 * 1024 * 1024
"""KiB of addresses that a push's programs may take; see Bounds."""
_CPU_SECONDS = 120
_UNCACHED: Headers = [
    (b"expires", b"Fri, 01 Jan 1980 00:00:00 GMT"),
    (b"pragma", b"no-cache"),
    (b"cache-control", b"no-cache, max-age=0, must-revalidate"),
]


class GitService(NamedTuple):
    """`name`: upload-pack or receive-pack. `environment`: all of it. `most`: bytes of a push."""

    name: str
    git_dir: Path
    environment: Mapping[str, str]
    most: int

    def command(self, *options: str) -> list[str]:
        return ["git", self.name, "--stateless-rpc", *options, str(self.git_dir)]

    @property
    def bounds(self) -> ProcessBounds | None:
        """Of what a pusher sends, the cost is bounded; what a fetch takes follows from the repository."""
        return ProcessBounds(_MEMORY, _CPU_SECONDS) if self.name == PUSH else None


async def advertise(exchange: Exchange, service: GitService) -> bool:
    """GET info/refs. Whether git ended well; an answer is sent in any case."""
    kind = f"application/x-git-{service.name}-advertisement"
    announced = b"" if _speaks_v2(service) else _announcement(service.name)
    async with running(service.command("--advertise-refs"), service.environment, service.bounds) as process:
        return await Relay(exchange, process).run(None, kind, announced)


async def call(exchange: Exchange, service: GitService, written: WrittenPush | None = None) -> bool:
    """POST git-upload-pack or git-receive-pack. Whether git ended well; an answer is sent in any case. `written`: what
    is written down of a push; of a fetch there is none."""
    if exchange.header(b"content-type") != f"application/x-git-{service.name}-request":
        raise StatusError(415, "UnsupportedMediaType", f"expected application/x-git-{service.name}-request")
    kind = f"application/x-git-{service.name}-result"
    if written is not None:
        return await _pushed(exchange, service, written, pieces(exchange, service.most * _DROPPED), kind)
    body = pieces(exchange, _NEGOTIATION)
    async with running(service.command(), service.environment, service.bounds) as process:
        return await Relay(exchange, process).run(body, kind)


async def _pushed(
    exchange: Exchange, service: GitService, written: WrittenPush, body: AsyncIterator[bytes], kind: str
) -> bool:
    try:
        begin = await commands(body)
    except ConnectionResetError:
        return False
    if begin.refs > _REFS:
        text = f"{begin.refs} refs in one push are too many: push at most {_REFS} at a time"
        await written.refuse(text)
        await _refuse(exchange, kind, begin, body, text)
        return False
    try:
        await written.begin(begin.moves)
    except OSError as error:
        log.error("a push is refused, since it cannot be written down who pushes: %s", error)
        why = "it cannot be written down who pushes; try again"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            why = "the server's disk is full: its operator has to make room. Nothing was changed"
        await _refuse(exchange, kind, begin, body, f"refused, since {why}")
        return False
    body, environment = _joined(begin.head, body), {**service.environment, **variables(begin.tips)}
    try:
        async with running(service.command(), environment, service.bounds) as process:
            return await Relay(exchange, process, PushRelay(written, begin.sideband)).run(body, kind)
    finally:
        await written.cut("it was given up before git had ended")  # unless that is written


async def _refuse(exchange: Exchange, kind: str, begin: Commands, body: AsyncIterator[bytes], text: str) -> None:
    """Once all of it is here: a client that still sends would not listen."""
    with contextlib.suppress(ConnectionResetError, StatusError):
        async for _ in body:
            pass
    await exchange.answer(200, refusal(text, begin.sideband), kind.encode(), _UNCACHED)


async def _joined(head: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield head
    async for part in rest:
        yield part


class PushRelay(NamedTuple):
    """Of a push: git may complete it even if the client goes away once all is here, and what came of it is written down
    before the client hears of it."""

    written: WrittenPush
    sideband: bool


class Relay:
    """One request and one process. `push`: where it is one."""

    def __init__(self, exchange: Exchange, process: Process, push: PushRelay | None = None) -> None:
        self._exchange = exchange
        self._process = process
        self._push = push
        self._complaints = b""
        self._poured = asyncio.Event()

    async def run(self, body: AsyncIterator[bytes] | None, kind: str, announced: bytes = b"") -> bool:
        """`body` None: git is told nothing. `announced`: what comes before git's own words."""
        answering = asyncio.create_task(self._answer(kind.encode(), announced))
        feeding, listening = asyncio.create_task(self._feed(body)), asyncio.create_task(self._listen())
        try:
            await asyncio.wait({answering, feeding}, return_when=asyncio.FIRST_COMPLETED)
            if answering.done():
                await answering
                return await self._ended(listening)
            why = await feeding
        finally:
            for task in (answering, feeding, listening):
                task.cancel()
            await asyncio.gather(answering, feeding, listening, return_exceptions=True)
        log.info("a git request was given up: %s", why)
        await cut(self._exchange)
        return False

    async def _ended(self, listening: asyncio.Task[None]) -> bool:
        code = await self._process.wait()
        await listening
        if code != 0 or self._complaints:
            text = self._complaints.decode(errors="replace").strip()
            log.log(logging.WARNING if code else logging.INFO, "git ended with %s: %s", code, text)
        return code == 0

    async def _feed(self, body: AsyncIterator[bytes] | None) -> str:
        """The request's body into git; then it waits for the client to go away, or longer if git may finish without it.
        It returns only where all of it is to be given up, and says why."""
        stdin = self._process.stdin
        assert stdin is not None
        try:
            if body is not None:
                await self._pour(body, stdin)
        except (ConnectionResetError, StatusError) as error:
            return str(error)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            stdin.close()
        self._poured.set()
        if self._push is not None:
            await asyncio.sleep(_FINISH_SECONDS)
            return f"git took longer than {_FINISH_SECONDS} seconds"
        while (await self._exchange.receive())["type"] != "http.disconnect":
            pass
        return "the client went away"

    @staticmethod
    async def _pour(body: AsyncIterator[bytes], stdin: asyncio.StreamWriter) -> None:
        """git may have heard enough before the end. What it has to say comes on its other end, and its client listens
        only when it has sent all."""
        hears = True
        async for part in body:
            if not hears:
                continue
            try:
                stdin.write(part)
                await stdin.drain()
            except (BrokenPipeError, ConnectionResetError):
                hears = False

    async def _listen(self) -> None:
        """Keep the beginning of what git complains about, drop the rest."""
        assert self._process.stderr is not None
        while chunk := await self._process.stderr.read(PIECE):
            self._complaints = (self._complaints + chunk)[:_COMPLAINTS]

    async def _answer(self, kind: bytes, announced: bytes) -> None:
        out = self._process.stdout
        assert out is not None
        chunk = await out.read(PIECE)
        if not chunk and await self._process.wait() != 0:
            if self._push is not None:
                await self._push.written.cut("git gave no answer")
            await self._exchange.answer(500, b"git gave no answer: see the server's log\n", TEXT)
            return
        await self._exchange.start(200, [(b"content-type", kind), *_UNCACHED, *self._exchange.said])
        if self._push is not None:
            await self._report(self._push, chunk)
            return
        chunk = announced + chunk
        while chunk:
            await self._exchange.chunk(chunk)
            chunk = await out.read(PIECE)
        await self._exchange.chunk(b"", more=False)

    async def _report(self, push: PushRelay, chunk: bytes) -> None:
        """The client hears of the end when the push stands and is written down, and when it has sent all."""
        out, report = self._process.stdout, HeldReport(sideband=push.sideband)
        assert out is not None
        while chunk:
            if passing := report.passing(chunk):
                await self._exchange.chunk(passing)
            chunk = await out.read(PIECE)
        await self._poured.wait()
        await self._process.wait()
        await push.written.end(report.read())
        await self._exchange.chunk(bytes(report.held), more=False)


async def cut(exchange: Exchange) -> None:
    """Ends the connection in the middle of whatever is under way on it."""
    exchange.cut()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(1):
            while (await exchange.receive())["type"] != "http.disconnect":
                pass


def _announcement(service: str) -> bytes:
    line = f"# service=git-{service}\n"
    return f"{len(line) + 4:04x}{line}0000".encode()


def _speaks_v2(service: GitService) -> bool:
    """Whether git's first words are those of protocol version 2, which pushes do not have."""
    asked = service.environment.get("GIT_PROTOCOL", "").split(":")
    return service.name != PUSH and "version=2" in asked
