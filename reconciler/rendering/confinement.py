"""What a program is run in, so that it reaches nothing but what it is shown. `bubblewrap` and `landlock` are two of
these; `sandboxes` chooses.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from reconciler.rendering.programs import RenderProgram
from reconciler.rendering.settings import RenderingBounds

_BEGIN = 20.0
"""Seconds that a sandbox may take to stand, on a machine that has much else to do."""
_GRACE = 5.0
"""Seconds in which what is killed has gone."""


class NoConfinement(Exception):
    """The sandbox could not be made; the program did not run. The text says why."""


class ConfinedRun(NamedTuple):
    """What is to be run. `top`: the directory with the files, laid out as in the repository; `directory`: in which of
    them the program starts, "" for `top`. `environment`: all of it."""

    program: RenderProgram
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    top: Path
    directory: str
    bounds: RenderingBounds


class Started(NamedTuple):
    """A program under way. `process`: of the sandbox; `held`: descriptors that stay open until it has ended; `inner`:
    one of the program's own process (a pidfd), where that is another."""

    process: subprocess.Popen[bytes]
    held: tuple[int, ...] = ()
    inner: int | None = None

    def kill(self) -> None:
        """Of the two the program, so that the sandbox is there to see it off: nobody else waits for it."""
        if self.inner is None:
            self.process.kill()
            return
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.inner, signal.SIGKILL)

    def close(self) -> None:
        """Ends it with all that it started, and waits for that."""
        self.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_GRACE)
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        for descriptor in (*self.held, *(() if self.inner is None else (self.inner,))):
            with contextlib.suppress(OSError):
                os.close(descriptor)


class Confinement(Protocol):
    name: str
    """For people."""
    blind: bool
    """Whether the program cannot even tell which paths there are on this machine."""

    def seen_at(self, top: Path) -> str:
        """Where the program sees a directory that is `top` here."""
        ...

    def start(self, run: ConfinedRun) -> Started:
        """Returns once the program is about to begin, with all bounds but those of time and output, whose pipes are
        the caller's to read. Raises NoConfinement and OSError."""
        ...


def first_line(descriptor: int) -> bytes:
    """What a sandbox says of itself before it begins; b"" where it ends instead."""
    until, said = time.monotonic() + _BEGIN, b""
    while b"\n" not in said:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, until - time.monotonic()))
        part = os.read(descriptor, 4096) if ready else b""
        if not part:
            return b""
        said += part
    return said.partition(b"\n")[0]


def last_words(started: Started) -> str:
    """Why it did not begin, as it says itself."""
    started.process.kill()
    _, said = started.process.communicate()
    started.close()
    return said.decode("utf-8", "replace").strip()[:500] or "it ended without a word"
