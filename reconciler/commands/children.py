"""The processes of one server: API workers and the reconciler, started again when they die, ended together.

Called by `up`. Children notice the end of their parent by a pipe, so that none outlives it. One that says so now and
then that it runs is killed where it does not for long: as long as it stands still it keeps the locks of its roles
(roles.py), so that nothing is done, and a process that has ended is started again.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from apiserver.logs.outlets import Outlet
from reconciler.commands.told import tell

MODULE = "reconciler.commands.reconcile"
"""What runs as a reconciler's process."""
VIEWER = "reconciler.commands.viewer"
"""What runs as the process that reads commits, with the same settings."""
_SOONEST = 1.0
_LATEST = 30.0
_LOOK = 1.0
"""Seconds that count at most between two looks: where there are more, this process stood still itself."""


@dataclass(slots=True)
class Child:
    """`start` makes the process; `failures` counts ends in a row that came within a minute of the start. `heard`: told
    each line of its standard output, which says that it runs; `silent`: seconds since it said anything. `task`: what it
    is called in metrics."""

    name: str
    start: Callable[[], subprocess.Popen[bytes]]
    heard: Callable[[bytes], None] | None = None
    task: str = ""
    silent: float = 0.0
    process: subprocess.Popen[bytes] | None = None
    began: float = 0.0
    failures: int = 0
    due: float = 0.0


@dataclass(slots=True)
class Children:
    """Call `look` now and then: it starts what is due and reports ends as texts. `patience`: seconds without a word
    after which a child is killed that is listened to. `ended`: told the task of each that has ended by itself."""

    patience: float = 60.0
    ended: Callable[[str], None] = lambda _: None
    children: list[Child] = field(default_factory=list)
    looked: float = field(default_factory=time.monotonic)

    def add(
        self,
        name: str,
        start: Callable[[], subprocess.Popen[bytes]],
        heard: Callable[[bytes], None] | None = None,
        *,
        task: str = "",
    ) -> Child:
        """`heard`: of one that says again and again that it runs."""
        child = Child(name, start, heard, task)
        self.children.append(child)
        self._start(child)
        return child

    def look(self) -> list[str]:
        said, now = [], time.monotonic()
        passed, self.looked = min(now - self.looked, _LOOK), now
        for child in self.children:
            child.silent += passed
            if child.process is None and now >= child.due:
                self._start(child)
            elif child.process is not None and child.process.poll() is not None:
                said.append(self._ended(child, now))
            elif child.process is not None and child.heard is not None and child.silent > self.patience:
                said.append(f"{child.name} has not answered for {self.patience:.0f} s: it is killed")
                _kill(child.process)
                child.silent = 0.0
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
        child.began, child.silent = time.monotonic(), 0.0
        if child.heard is not None:
            threading.Thread(target=_listen, args=(child, child.process, child.heard), daemon=True).start()

    def _ended(self, child: Child, now: float) -> str:
        assert child.process is not None
        code = child.process.returncode
        if child.process.stdin is not None:
            child.process.stdin.close()
        self.ended(child.task)
        child.failures = child.failures + 1 if now - child.began < 60 else 1
        wait = min(_LATEST, _SOONEST * 2 ** (child.failures - 1))
        child.process, child.due = None, now + wait
        return f"{child.name} ended with {code}; it is started again in {wait:.0f} s"


def _listen(child: Child, process: subprocess.Popen[bytes], heard: Callable[[bytes], None]) -> None:
    assert process.stdout is not None
    with process.stdout as lines:
        for line in lines:
            if child.process is process:
                child.silent = 0.0
            heard(line)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """With what it has started in its group, if that is its own."""
    with contextlib.suppress(ProcessLookupError):
        if os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def spawn_viewer(settings: str, outlet: Outlet) -> subprocess.Popen[bytes]:
    """The process that reads commits for API workers."""
    process = subprocess.Popen(
        [sys.executable, "-m", VIEWER],
        stdin=subprocess.PIPE,
        stdout=outlet.error,
        stderr=outlet.error,
        pass_fds=(outlet.pipe,),
        env={**os.environ, **outlet.logging.variables()},
        process_group=0,
    )
    tell(process, settings)
    return process


def start_reconciler(outlet: Outlet, roles: str = "all") -> subprocess.Popen[bytes]:
    """A reconciler's process, which waits to be told what (told). Its standard output carries reports (report)."""
    return subprocess.Popen(
        [sys.executable, "-m", MODULE, roles],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=outlet.error,
        pass_fds=(outlet.pipe,),
        env={**os.environ, **outlet.logging.variables()},
        # A group of its own: Ctrl-C on the terminal is for the parent, and not for a git that runs for the reconciler.
        process_group=0,
    )
