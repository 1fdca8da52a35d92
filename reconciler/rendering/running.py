"""Listens to a program in its sandbox until it ends, or has had its time, or printed too much.

Called by renderer, in whichever thread asks for the rendering.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import threading
import time
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from reconciler.rendering.confinement import ConfinedRun, Confinement, Started

_SAID = 64 * 1024
"""Bytes of standard error that are looked at."""
_PART = 64 * 1024


class RunEnd(Enum):
    BY_ITSELF = "by itself"
    TIME = "its time was over"
    OUTPUT = "it printed too much"


class RunResult(NamedTuple):
    """`code`: as the system has it, negative or above 128 for a signal; `said`: standard error."""

    code: int
    output: bytes
    said: bytes
    end: RunEnd


class RunsUnderWay:
    """Programs that run, for who ends them all. Safe from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started: list[Started] = []

    @contextlib.contextmanager
    def noted(self, started: Started) -> Iterator[None]:
        with self._lock:
            self._started.append(started)
        try:
            yield
        finally:
            with self._lock:
                self._started.remove(started)

    def end(self) -> None:
        """Whoever waits for one is told that it was killed."""
        with self._lock:
            for started in self._started:
                started.kill()


def run_confined(confinement: Confinement, run: ConfinedRun, under_way: RunsUnderWay | None = None) -> RunResult:
    """Nothing of it is left when this returns. Raises NoConfinement and OSError."""
    started = confinement.start(run)
    try:
        with (under_way or RunsUnderWay()).noted(started):
            return _listen(started, run)
    finally:
        started.close()


def _listen(started: Started, run: ConfinedRun) -> RunResult:
    until = time.monotonic() + run.bounds.seconds
    process, output, said, length = started.process, [], bytearray(), 0
    with selectors.DefaultSelector() as selector:
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                selector.register(stream.fileno(), selectors.EVENT_READ, stream is process.stdout)
        while selector.get_map():
            ready = selector.select(max(0.0, until - time.monotonic()))
            # Also of what is always ready, since it prints without an end.
            if not ready or time.monotonic() > until:
                return RunResult(-9, b"", bytes(said), RunEnd.TIME)
            for key, _ in ready:
                part = os.read(key.fd, _PART)
                if not part:
                    selector.unregister(key.fd)
                elif key.data:
                    output.append(part)
                    length += len(part)
                    if length > run.bounds.output:
                        return RunResult(-9, b"", bytes(said), RunEnd.OUTPUT)
                elif len(said) < _SAID:
                    said += part
    try:
        code = process.wait(max(0.0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        return RunResult(-9, b"", bytes(said), RunEnd.TIME)
    return RunResult(code, b"".join(output), bytes(said), RunEnd.BY_ITSELF)
