"""Child processes that never outlive this one, each with its output in a log file, and ports for them.

cluster.py starts the programs of a cluster with it. What ends them if this process is killed is guard.py.
"""

from __future__ import annotations

import contextlib
import secrets
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

_LEAST = 10_000
"""Ports below are other programs'."""
_guard: subprocess.Popen[str] | None = None
_lock = threading.Lock()


class Process:
    """One running program. `log` is the file that has its output, appended over restarts."""

    def __init__(self, command: list[str], folder: Path, environment: dict[str, str] | None = None) -> None:
        self.name = Path(command[0]).name
        self.log = folder / f"{self.name}.log"
        with self.log.open("ab") as output:
            # A session of its own: Ctrl-C in the terminal reaches the tests, which then stop clusters in order.
            self._popen = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        _tell_guard(f"+{self.pid}")

    @property
    def pid(self) -> int:
        return self._popen.pid

    def ended(self) -> bool:
        return self._popen.poll() is not None

    def send(self, number: signal.Signals) -> None:
        if not self.ended():
            self._popen.send_signal(number)

    def end(self, number: signal.Signals, seconds: float = 10) -> int:
        """Send the signal, wait; SIGKILL if that was not enough. A paused process is resumed first. The exit code."""
        self.send(number)
        self.send(signal.SIGCONT)
        try:
            self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()
        _tell_guard(f"-{self.pid}")
        return self._popen.returncode

    def last_words(self, lines: int = 5) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody listens on now, of those that nobody gets who asks for any: a test's other servers
    and all connections get theirs so, before this one is used and while it stands between two starts. Somebody who
    names a port may still take it: be ready to retry."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            _bind(each)
        return [each.getsockname()[1] for each in sockets]


def _bind(found: socket.socket) -> None:
    for _ in range(100 if _given() > 2 * _LEAST else 0):
        with contextlib.suppress(OSError):
            return found.bind(("127.0.0.1", _LEAST + secrets.randbelow(_given() - _LEAST)))
    return found.bind(("127.0.0.1", 0))


def _given() -> int:
    """The least port that is given to who asks for any; 0 where that is not known."""
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except OSError:
        return 0


def _tell_guard(line: str) -> None:
    global _guard  # noqa: PLW0603 - one guard a process is the point
    with _lock:
        if _guard is None:
            command = [sys.executable, "-S", "-E", str(Path(__file__).with_name("guard.py"))]
            _guard = subprocess.Popen(command, stdin=subprocess.PIPE, text=True, start_new_session=True)
        assert _guard.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            _guard.stdin.write(line + "\n")
            _guard.stdin.flush()
