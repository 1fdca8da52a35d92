"""The log of one process: what it is set up with, and how its lines get to whoever writes them.

Called first of all by each process of a server. `up` says in an environment variable how (outlets); a process that is
started without it, by a test, say, writes to its own standard error. A command that serves nothing has no log of its
own: what it is warned of goes to standard error in the same lines (log_at_last).
"""

from __future__ import annotations

import json
import logging
import os
import select
import sys
import threading
import time
from dataclasses import asdict, dataclass
from types import TracebackType

from apiserver.logs.lines import LEFT_OUT, LogLines

LOG = "TREEPLANE_LOG"
"""The environment variable: a Logging as JSON."""
LEVELS = ("debug", "info", "warning", "error")
OURS = ("apiserver", "reconciler", "__main__")
"""Loggers whose level is chosen. Of libraries only warnings are logged: what they say beyond that may be anything, such
as whole answers of clusters."""

_WINDOW, _MOST = 10.0, 100
"""Seconds, and lines of each place in the program in that time: tenants can bring about many."""
_LAST_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Logging:
    """`process`: its name in each line. `pipe`: a file descriptor that lines are written to; None: standard error."""

    process: str
    level: str = "warning"
    format: str = "text"
    pipe: int | None = None

    def variables(self) -> dict[str, str]:
        return {LOG: json.dumps(asdict(self))}

    @staticmethod
    def given(process: str) -> Logging:
        """As the environment says it, from which it is taken: it is not for children."""
        found = os.environ.pop(LOG, "")
        return Logging(**json.loads(found)) if found else Logging(process)


def begin(process: str) -> None:
    """From now on this process logs. `process`: what it is called where nobody says it."""
    given = Logging.given(process)
    if given.pipe is not None:
        os.set_inheritable(given.pipe, False)
    log_to(given)
    sys.excepthook = _uncaught


def log_to(given: Logging) -> logging.Handler:
    handler = LogHandler(given.pipe)
    handler.setFormatter(LogLines(given.process, given.format))
    root, level = logging.getLogger(), given.level.upper()
    root.addHandler(handler)
    root.setLevel(max(logging.WARNING, logging.getLevelNamesMapping()[level]))
    for name in OURS:
        logging.getLogger(name).setLevel(level)
    logging.captureWarnings(True)
    threading.excepthook = _thread_ended
    return handler


def log_at_last(process: str) -> None:
    """What is logged where nobody sets up a log, warnings and worse, is written like any: Python would write it as it
    is, with whatever strangers' text does to a terminal."""
    handler = LogHandler(None)
    handler.setLevel(logging.WARNING)
    handler.setFormatter(LogLines(process, "text"))
    logging.lastResort = handler


class LogHandler(logging.Handler):
    """Writes lines to a pipe, whole or not at all, and never waits for room; None: to standard error, where it does."""

    def __init__(self, pipe: int | None) -> None:
        super().__init__()
        self._pipe, self._rest, self._lost = pipe, b"", 0
        self._seen: dict[tuple[str, int], LinesOfPlace] = {}
        if pipe is not None:
            os.set_blocking(pipe, False)

    def emit(self, record: logging.LogRecord) -> None:
        seen = self._seen.setdefault((record.pathname, record.lineno), LinesOfPlace())
        if not seen.passes(time.monotonic()):
            return
        if self._lost or seen.left_out:
            setattr(record, LEFT_OUT, self._lost + seen.left_out)
        try:
            line = f"{self.format(record)}\n".encode(errors="backslashreplace")
        except Exception:
            self._lost += 1  # nothing that is logged may end what is done
            return
        if self._write(line):
            self._lost = seen.left_out = 0
        else:
            self._lost += 1

    def flush(self) -> None:
        """At the end of the process: what is left gets a moment."""
        if self._pipe is not None and self._rest:
            select.select([], [self._pipe], [], _LAST_SECONDS)
            self._write(b"")

    def _write(self, line: bytes) -> bool:
        """Whether it is on its way. Of a line that only fits in part, the rest goes before the next one."""
        if self._pipe is None:
            sys.stderr.write(line.decode(errors="replace"))
            sys.stderr.flush()
            return True
        try:
            while self._rest:
                self._rest = self._rest[os.write(self._pipe, self._rest) :]
            if line:
                self._rest = line[os.write(self._pipe, line) :]
        except OSError:  # no room, or nobody is there any more
            return False
        return True


@dataclass(slots=True)
class LinesOfPlace:
    """Lines of one place in the program."""

    since: float = 0.0
    count: int = 0
    left_out: int = 0

    def passes(self, now: float) -> bool:
        if now - self.since >= _WINDOW:
            self.since, self.count = now, 0
        self.count += 1
        if self.count > _MOST:
            self.left_out += 1
        return self.count <= _MOST


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        logging.getLogger("apiserver").critical("this process ends", exc_info=(kind, error, trace))


def _thread_ended(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None and not issubclass(args.exc_type, SystemExit):
        name = args.thread.name if args.thread else "a thread"
        logging.getLogger("apiserver").error(
            "%s ended", name, exc_info=(args.exc_type, args.exc_value, args.exc_traceback)
        )
