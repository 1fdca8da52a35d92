"""What the reconciler's process tells `up`: one JSON object a line on its standard output."""

from __future__ import annotations

import json
import logging
import select
import sys
import threading
import time
from typing import Any

_EVERY = 0.2
_LAST = 1.0
"""Seconds that a last word may take."""


class Report:
    """Events: `progress` (done), `loaded` (workspaces, held, commit, seconds), `held`, `mended`, `happened` (sort,
    text); with a text `note`, `trouble` and `refused` (there is no start); `alive`, that the process runs; `lends`,
    that another process may do what is beside loading."""

    def __init__(self) -> None:
        self._last = 0.0
        self._lock = threading.Lock()

    def progress(self, done: int) -> None:
        """At most five times a second."""
        now = time.monotonic()
        if now - self._last >= _EVERY:
            self._last = now
            self.say("progress", done=done)

    def alive(self) -> None:
        """Nobody waits for `up` to read this."""
        if self._lock.acquire(blocking=False):
            try:
                if select.select([], [sys.stdout], [], 0)[1]:
                    self._write("alive", {})
            finally:
                self._lock.release()

    def last(self, event: str, **facts: Any) -> None:
        """Said if it can be: the process ends now."""
        if self._lock.acquire(timeout=_LAST) and select.select([], [sys.stdout], [], _LAST)[1]:
            self._write(event, facts)

    def say(self, event: str, **facts: Any) -> None:
        with self._lock:
            self._write(event, facts)

    def pass_on(self, logger: logging.Logger) -> None:
        """What `logger` warns of is said as a note, and not logged here: `up` keeps what it is told in the log."""
        logger.addHandler(_Notes(self))
        logger.propagate = False

    @staticmethod
    def _write(event: str, facts: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps({"event": event, **facts}) + "\n")
        sys.stdout.flush()


class _Notes(logging.Handler):
    """Warnings only: an error is met again and again, and is told as a trouble by who meets it."""

    def __init__(self, report: Report) -> None:
        super().__init__()
        self._report = report

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno == logging.WARNING:
            self._report.say("note", text=record.getMessage())
        else:
            logging.getLogger().handle(record)
