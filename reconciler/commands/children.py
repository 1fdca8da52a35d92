"""The processes of one server: API workers and the reconciler, started again when they die, ended together.

Called by `up`. Children notice the end of their parent by a pipe, so that none outlives it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

_SOONEST = 1.0
_LATEST = 30.0


@dataclass(slots=True)
class Child:
    """`start` makes the process; `failures` counts ends in a row that came within a minute of the start."""

    name: str
    start: Callable[[], subprocess.Popen[bytes]]
    process: subprocess.Popen[bytes] | None = None
    began: float = 0.0
    failures: int = 0
    due: float = 0.0


@dataclass(slots=True)
class Children:
    """Call `look` now and then: it starts what is due and reports ends as texts."""

    children: list[Child] = field(default_factory=list)

    def add(self, name: str, start: Callable[[], subprocess.Popen[bytes]]) -> Child:
        child = Child(name, start)
        self.children.append(child)
        self._start(child)
        return child

    def look(self) -> list[str]:
        said, now = [], time.monotonic()
        for child in self.children:
            if child.process is None and now >= child.due:
                self._start(child)
            elif child.process is not None and child.process.poll() is not None:
                said.append(self._ended(child, now))
        return said

    def stop(self, seconds: float = 15.0) -> None:
        """Ask all to end, then kill what is left."""
        alive = [c.process for c in self.children if c.process is not None and c.process.poll() is None]
        for process in alive:
            process.terminate()
        deadline = time.monotonic() + seconds
        for process in alive:
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _start(self, child: Child) -> None:
        child.process = child.start()
        child.began = time.monotonic()

    def _ended(self, child: Child, now: float) -> str:
        assert child.process is not None
        code = child.process.returncode
        child.failures = child.failures + 1 if now - child.began < 60 else 1
        wait = min(_LATEST, _SOONEST * 2 ** (child.failures - 1))
        child.process, child.due = None, now + wait
        return f"{child.name} ended with {code}; it is started again in {wait:.0f} s"


def spawn_reconciler(settings: str, log: int) -> subprocess.Popen[bytes]:
    """The reconciler's process; its standard output carries reports (see report.py), `log` takes its messages."""
    return subprocess.Popen(
        [sys.executable, "-m", "reconciler.commands.reconcile"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        env={**os.environ, "TREEPLANE_RECONCILE": settings},
        # A group of its own: Ctrl-C on the terminal is for the parent, and not for a git that runs for the reconciler.
        process_group=0,
    )
