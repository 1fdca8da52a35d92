"""What was counted and is not written yet: a thread writes it, a fifth of a second after the first of it came.

A counter in a file that processes share costs microseconds, a GET about ninety: so whoever counts adds in memory, and
all that came meanwhile is written at once. A process that is killed loses that fifth of a second. Where nothing happens
nothing wakes up. The library is imported by this thread, too, so that no start waits for it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Protocol

log = logging.getLogger(__name__)

SECONDS = 0.2

lock = threading.Lock()
"""Held by whoever counts."""
_writing = threading.Lock()
"""Held by whoever writes."""
_news = threading.Event()
_changed: list[Noted] = []
_writer: threading.Thread | None = None


class Noted(Protocol):
    """A metric, or somebody who counts for several. `take` is called under the lock, what it returns after that."""

    noted: bool

    def take(self) -> Callable[[], None]: ...


def begin() -> None:
    """Called once in a process of a server. Elsewhere, in commands and tests, what is counted waits for `flush`."""
    global _writer  # noqa: PLW0603 - one for the process
    if _writer is None:
        _writer = threading.Thread(target=_run, name="metrics", daemon=True)
        _writer.start()


def note(source: Noted) -> None:
    """Something waits there that did not before. Under the lock."""
    source.noted = True
    _changed.append(source)
    _news.set()


def flush() -> None:
    """Writes what waits, now."""
    with _writing:
        with lock:
            _news.clear()
            taken = []
            for source in _changed:
                source.noted = False
                taken.append(source.take())
            _changed.clear()
        for write_it in taken:
            write_it()


def write(metric: Any, found: Mapping[tuple[str, ...], float | list[float]]) -> None:
    """Called by what `take` returned alone."""
    import_module("apiserver.metrics.library").write(metric, found)


def _run() -> None:
    pause = threading.Event()
    while True:
        _news.wait()
        pause.wait(SECONDS)
        try:
            flush()
        except Exception:  # a disk that is full, say: what is served does not depend on what is counted
            log.exception("metrics could not be written")
            pause.wait(10)
