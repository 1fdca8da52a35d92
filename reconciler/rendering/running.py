"""Listens to a program in its sandbox until it ends, or has had its time, or printed too much.

Called by renderer, in whichever thread asks for the rendering.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import time
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


def run_confined(confinement: Confinement, run: ConfinedRun) -> RunResult:
    """Nothing of it is left when this returns. Raises NoConfinement and OSError."""
    started = confinement.start(run)
    try:
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
            if not ready:
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
