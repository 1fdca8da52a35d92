"""Questions about commits over a socket: a line each, and a line that answers it.

Called by commands/viewer, once somebody asks. The process has no threads, so that it can fork (jobs).
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
from pathlib import Path

from apiserver.endpoints.commitasking import LONGEST, CommitQuestion, told
from apiserver.model.errors import StatusError
from reconciler.rendering.rendering import NOWHERE, Renders
from reconciler.repository.access import NO_ACCESS, RemoteAccess
from reconciler.viewing.viewer import Viewer

_PATIENCE = 10.0
"""Seconds in which a question has to be asked."""


def serve(
    listener: socket.socket,
    data_dir: Path,
    source: str,
    renders: Renders = NOWHERE,
    *,
    folder: str = "",
    access: RemoteAccess = NO_ACCESS,
) -> None:
    """Until it is told to stop, or its parent ends. The rest: see Viewer."""
    asyncio.run(_serve(listener, Viewer(data_dir, source, renders=renders, folder=folder, access=access)))


async def _serve(listener: socket.socket, viewer: Viewer) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.add_reader(sys.stdin.fileno(), stop.set)

    async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _answer(viewer, reader, writer)

    server = await asyncio.start_unix_server(answered, sock=listener, limit=LONGEST)
    try:
        await stop.wait()
    finally:
        server.close()  # nobody is waited for: what is under way ends with the event loop


async def _answer(viewer: Viewer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError, ValueError, TimeoutError):
        async with asyncio.timeout(_PATIENCE):
            asked = CommitQuestion.parse(await reader.readline())
        try:
            writer.write(told(await viewer.answer(asked)))
        except StatusError as error:
            writer.write(told(error))
        await writer.drain()
    writer.close()
