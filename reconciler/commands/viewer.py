"""The process that reads commits for API workers: a socket in the data directory, and a line for each question.

Started by `up` beside the reconciler. It is small until somebody asks: what it works with is imported then. It has no
threads, so that it can fork (viewing/jobs).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from apiserver.endpoints.commitasking import LONGEST, SOCKET, CommitQuestion, told
from apiserver.localsocket import address
from apiserver.model.errors import StatusError
from reconciler.commands.children import SETTINGS

if TYPE_CHECKING:
    from reconciler.viewing.viewer import Viewer

log = logging.getLogger(__name__)

_PATIENCE = 10.0
"""Seconds in which a question has to be asked."""


class ViewerProcess:
    """Of the server in `data_dir`, whose fleet is in `source`."""

    def __init__(self, data_dir: Path, source: str) -> None:
        self._data_dir, self._source = data_dir, source
        self._viewer: Viewer | None = None
        self._asked: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until it is told to stop, or its parent ends."""
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        loop.add_reader(sys.stdin.fileno(), stop.set)  # nothing is ever said there: it is the parent's end
        with address(self._data_dir, SOCKET) as at:
            Path(at).unlink(missing_ok=True)  # of a former self that was killed
            server = await asyncio.start_unix_server(self._answer, at, limit=LONGEST)
            Path(at).chmod(0o600)
        async with server:
            await stop.wait()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ValueError, TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                asked = CommitQuestion.parse(await reader.readline())
            try:
                writer.write(told(await self._found().answer(asked)))
            except StatusError as error:
                writer.write(told(error))
            await writer.drain()
        writer.close()

    def _found(self) -> Viewer:
        if self._viewer is None:
            make: type[Viewer] = import_module("reconciler.viewing.viewer").Viewer
            self._viewer = make(self._data_dir, self._source)
        return self._viewer


def main() -> None:
    """Settings come as for the reconciler's process."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(message)s")
    settings = json.loads(os.environ[SETTINGS])
    asyncio.run(ViewerProcess(Path(settings["data_dir"]), settings["source"]).run())


if __name__ == "__main__":
    main()
