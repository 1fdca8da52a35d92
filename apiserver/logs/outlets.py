"""The only writer of the log: the parent of a server's processes, which has a pipe from each.

Used by `treeplane up`. A thread reads what comes and writes it, to standard error or to files of bounded size. Two
pipes come from each child: what it logs, whole lines that are written as they come, and its standard error, which is
empty but for what kills an interpreter or is said by a program that it has started. That is anybody's text, and each
line of it becomes one of the log.

Where writing is slow (a terminal that stands still, a disk) pipes become full. Who logs does not wait for room; it
counts what it could not say (records).
"""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from apiserver.logs.lines import LogLines
from apiserver.logs.records import Logging, log_to
from apiserver.logs.rotated import RotatedFile

_PIECE = 64 * 1024
_LONGEST = 16 * 1024
"""Bytes of a line from standard error; what is longer is several."""
_LOOK_SECONDS = 0.5
_LAST_SECONDS = 2.0
_QUIET_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Outlet:
    """What a child is started with: `logging` for its environment, `error` as its standard error."""

    logging: Logging
    error: int

    @property
    def pipe(self) -> int:
        """A file descriptor that the child has to have."""
        assert self.logging.pipe is not None
        return self.logging.pipe


class Outlets:
    """`level` and `form`: of all processes. `file`: in place of standard error."""

    def __init__(self, level: str, form: str, file: RotatedFile | None = None) -> None:
        self._level, self._form = level, form
        self._write = LogWriter(file)
        self._selector = selectors.DefaultSelector()
        self._ends = threading.Event()
        self._own: int | None = None
        self._handler: logging.Handler | None = None
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)

    def begin(self, process: str) -> None:
        """From now on this process itself logs, too."""
        self._own = self._listen(lambda line: line)
        self._handler = log_to(Logging(process, self._level, self._form, self._own))
        self._thread.start()

    @contextlib.contextmanager
    def child(self, process: str) -> Iterator[Outlet]:
        """While a child is started that is called so."""
        lines = LogLines(process, self._form)
        pipe, error = self._listen(lambda line: line), self._listen(lambda line: _as_record(lines, line))
        try:
            yield Outlet(Logging(process, self._level, self._form, pipe), error)
        finally:
            os.close(pipe)
            os.close(error)

    def close(self) -> None:
        """Children have ended. What they said is written; what they have started and left may go on saying something,
        and nobody hears it."""
        if self._handler is not None:
            self._handler.flush()
            logging.getLogger().removeHandler(self._handler)
        if self._own is not None:
            os.close(self._own)
        self._ends.set()
        self._thread.join(_LAST_SECONDS)

    def _listen(self, made: Callable[[bytes], bytes]) -> int:
        """The end of a new pipe that is written to. `made`: of each line what is written."""
        mine, its = os.pipe()
        os.set_blocking(mine, False)
        self._selector.register(mine, selectors.EVENT_READ, ComingLines(made))
        return its

    def _run(self) -> None:
        while self._selector.get_map():
            ready = self._selector.select(_LOOK_SECONDS)
            if not ready and self._ends.is_set():
                return
            for key, _ in ready:
                self._read(key.fd, key.data)

    def _read(self, pipe: int, coming: ComingLines) -> None:
        try:
            data = os.read(pipe, _PIECE)
        except BlockingIOError:
            return
        if lines := coming.lines(data):
            self._write(lines)
        if not data:
            self._selector.unregister(pipe)
            os.close(pipe)


@dataclass(slots=True)
class ComingLines:
    """What comes through one pipe."""

    made: Callable[[bytes], bytes]
    begun: bytes = b""

    def lines(self, data: bytes) -> bytes:
        """What can be written now. `data`: nothing at the end."""
        *lines, self.begun = (self.begun + data).split(b"\n")
        if self.begun and (not data or len(self.begun) > _LONGEST):
            lines.append(self.begun)
            self.begun = b""
        return b"".join(self.made(line) + b"\n" for line in lines if line)


@dataclass(slots=True)
class LogWriter:
    """What is written, where. Where it cannot be, standard error is told so, now and then, and the server goes on."""

    file: RotatedFile | None
    told: float = field(default=-_QUIET_SECONDS)

    def __call__(self, lines: bytes) -> None:
        try:
            if self.file is not None:
                self.file.append(lines)
                return
            while lines:
                lines = lines[os.write(sys.stderr.fileno(), lines) :]
        except (OSError, ValueError) as error:
            if self.file is not None and time.monotonic() - self.told > _QUIET_SECONDS:
                self.told = time.monotonic()
                with contextlib.suppress(OSError):
                    os.write(sys.stderr.fileno(), f"{self.file.path}: the log is not written: {error}\n".encode())


def _as_record(lines: LogLines, said: bytes) -> bytes:
    record = logging.LogRecord(
        "stderr", logging.ERROR, "", 0, "%s", (said.decode(errors="replace").rstrip("\r"),), None
    )
    return lines.format(record).encode()
