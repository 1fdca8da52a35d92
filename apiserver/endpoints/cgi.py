"""One run of `git http-backend`: a request streamed in, an answer streamed out.

Called by git.py, which has decided that the request may pass. The protocol is git's own; here are only pipes. Nothing
is held in memory whole, in neither direction.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping

from apiserver.endpoints.exchange import Exchange, Headers

log = logging.getLogger(__name__)

_CHUNK = 64 * 1024
_IDLE_SECONDS = 120
"""A client that neither sends nor takes for so long loses its place."""
_COMPLAINTS = 4 * 1024


class Backend:
    """Relays one exchange. `finish`: let git complete even if the client goes away (a push that is all here)."""

    def __init__(self, exchange: Exchange, environment: Mapping[str, str], *, finish: bool) -> None:
        self._exchange = exchange
        self._environment = environment
        self._finish = finish
        self._complaints = b""

    async def run(self) -> bool:
        """Whether git ended well. An answer is sent in any case."""
        process = await asyncio.create_subprocess_exec(
            "git", "http-backend", env=self._environment, stdin=PIPE, stdout=PIPE, stderr=PIPE, limit=_CHUNK
        )
        aside = [asyncio.create_task(self._feed(process)), asyncio.create_task(self._listen(process))]
        try:
            await self._answer(process)
            code = await process.wait()
            await aside[1]
        except (TimeoutError, ConnectionError) as error:
            log.warning("a git request was given up: %s", type(error).__name__)
            return False
        finally:
            _kill(process)
            for task in aside:
                task.cancel()
            await asyncio.gather(*aside, return_exceptions=True)
            await process.wait()
        if code != 0 or self._complaints:
            level = logging.WARNING if code else logging.INFO
            log.log(
                level, "git http-backend ended with %s: %s", code, self._complaints.decode(errors="replace").strip()
            )
        return code == 0

    async def _feed(self, process: Process) -> None:
        """The request's body into git; afterwards, wait for the client to go away."""
        stdin = process.stdin
        assert stdin is not None
        more = True
        try:
            while more:
                async with asyncio.timeout(_IDLE_SECONDS):
                    message = await self._exchange.receive()
                    if message["type"] == "http.disconnect":
                        _kill(process)
                        return
                    stdin.write(message.get("body", b""))
                    await stdin.drain()
                more = message.get("more_body", False)
            stdin.close()
            while (await self._exchange.receive())["type"] != "http.disconnect":
                pass
        except (BrokenPipeError, ConnectionResetError):
            # git has heard enough; what it has to say comes on its other end.
            return
        except TimeoutError:
            _kill(process)
            return
        # A client that went away is no reason to end a push between its checks and its ref.
        if not self._finish:
            _kill(process)

    async def _listen(self, process: Process) -> None:
        """Keep the beginning of what git complains about, drop the rest."""
        assert process.stderr is not None
        while chunk := await process.stderr.read(_CHUNK):
            self._complaints = (self._complaints + chunk)[:_COMPLAINTS]

    async def _answer(self, process: Process) -> None:
        out = process.stdout
        assert out is not None
        try:
            head = await out.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            await self._exchange.answer(502, b"git gave no answer\n", b"text/plain; charset=utf-8")
            return
        status, headers = parse_head(head)
        await self._exchange.start(status, headers)
        while chunk := await out.read(_CHUNK):
            async with asyncio.timeout(_IDLE_SECONDS):
                await self._exchange.chunk(chunk)
        if self._finish:
            # The client hears of the end only when the push stands.
            await process.wait()
        await self._exchange.chunk(b"", more=False)


def parse_head(head: bytes) -> tuple[int, Headers]:
    """A CGI header block: its `Status` (200 if absent) and the other headers, in lower case."""
    status, headers = 200, []
    for line in head.split(b"\r\n"):
        name, colon, value = line.partition(b":")
        if not colon:
            continue
        if name.lower() == b"status":
            status = int(value.split()[0])
        else:
            headers.append((name.strip().lower(), value.strip()))
    return status, headers


def _kill(process: Process) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
