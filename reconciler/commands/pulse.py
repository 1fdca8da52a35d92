"""Says that a reconciler's process runs, and ends it where another has taken a role of its own since.

A thread, started with the process. `up` ends a process that it does not hear of (children.py): one that stands still
keeps the kernel's locks of its roles, so nobody takes them before that. One that was not ended, and goes on after
another took a role, finds that here or with its next write, whichever comes first, and ends as if it were killed.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from apiserver.parent import leave
from reconciler.commands.report import Report
from reconciler.commands.roles import Work

log = logging.getLogger(__name__)

BEAT = 5.0
LOST = 5
"""The process's exit code where it lost a role."""


class Pulse:
    """`start`; it lasts as long as the process. `look`: what is looked at with each beat."""

    def __init__(self, report: Report, seconds: float = BEAT) -> None:
        self.look: Callable[[], object] = lambda: None
        self._report, self._seconds = report, seconds
        self._never = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._run, name="pulse", daemon=True).start()

    def _run(self) -> None:
        while True:
            self._report.alive()
            try:
                self.look()
            except Exception as error:  # whoever lost a role has ended by then; a store that is closed has no role
                log.debug("the roles were not looked at: %s", error)
            self._never.wait(self._seconds)


def end_without(report: Report) -> Callable[[Work], None]:
    """Ends this process for a role that another has by now, with a line. What is under way ends where it is."""
    once = threading.Lock()

    def end(work: Work) -> None:
        if once.acquire(blocking=False):
            text = f"another process has taken the role {work}, or may: this one writes nothing any more, and ends"
            log.info("%s", text)  # it is told, as the last that this process says
            report.last("trouble", text=text)
            leave(LOST)

    return end
