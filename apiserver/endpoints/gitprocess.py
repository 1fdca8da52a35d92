"""A git program that serves one request: with bounds, in a group of its own, gone with its children when that is over.

Called by gitservice.py. git's own `http-backend` is not used: it reads for ever, at full speed, from a client that went
away before the end that it had announced.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import PIPE, Process, SubprocessStreamProtocol
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

PIECE = 64 * 1024
_GRACE_SECONDS = 3
"""Between asking it to end and insisting."""

_BEHIND = ("nice", "-n", "5")
"""Requests to the API come first."""
_BOUNDED = 'ulimit -v "$1" 2>/dev/null; ulimit -t "$2"; shift 2; exec "$@"'


@dataclass(frozen=True, slots=True)
class ProcessBounds:
    """Of each process: `memory` in KiB of addresses, `cpu` in seconds. A system that knows no such bound of memory
    leaves it out."""

    memory: int
    cpu: int


@contextlib.asynccontextmanager
async def running(
    command: Sequence[str], environment: Mapping[str, str], bounds: ProcessBounds | None = None
) -> AsyncIterator[Process]:
    """The process while it is worth running: afterwards it and its children are ended, if they have not by themselves.
    What has `bounds` writes, and is first left to take back what it has begun."""
    command = [*_BEHIND, *command]
    if bounds is not None:
        command = ["sh", "-c", _BOUNDED, "sh", str(bounds.memory), str(bounds.cpu), *command]
    loop = asyncio.get_running_loop()
    protocol = SubprocessStreamProtocol(PIECE, loop)
    transport, _ = await loop.subprocess_exec(
        lambda: protocol, *command, env=environment, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True
    )
    process = Process(transport, protocol, loop)
    try:
        yield process
    finally:
        for ending in (hang_up, _terminate, _kill) if bounds is not None else (_terminate, _kill):
            ending(process)
            if await _silent(process):
                break
        await process.wait()
        # This and what writes to it hold each other, and with them the pipes: the garbage collector would let go of
        # them, late, since it counts a few objects of Python and sees not what is behind them.
        protocol.stdin = None


def hang_up(process: Process) -> None:
    """The end of what it is told: git then ends in order, and knows that not all was said."""
    if process.stdin is not None:
        process.stdin.close()


def _terminate(process: Process) -> None:
    if process.returncode is None:
        _signal(process, signal.SIGTERM)


def _kill(process: Process) -> None:
    """Also where the first has ended, since somebody holds its pipes."""
    _signal(process, signal.SIGKILL)


def _signal(process: Process, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


async def _silent(process: Process) -> bool:
    """Reads to their ends the pipes that the event loop would hold otherwise; False if somebody still writes."""
    try:
        async with asyncio.timeout(_GRACE_SECONDS):
            for pipe in (process.stdout, process.stderr):
                while pipe is not None and await pipe.read(PIECE):
                    pass
    except TimeoutError:
        return False
    return True
