"""Child processes that never outlive this one, each with its output in a log file, and ports for them.

cluster.py starts the programs of a cluster with it. What ends them if this process is killed is guard.py.
"""

from __future__ import annotations

import contextlib
import random
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

_guard: subprocess.Popen[str] | None = None
_lock = threading.Lock()
_GIVEN = Path("/proc/sys/net/ipv4/ip_local_port_range")
"""From where to where the kernel gives ports to whoever asks for any."""
_LOWEST = 12_000
"""Below are those of well-known programs."""
_handed_out: set[int] = set()
"""Kept for those that asked: a server that is away for a moment comes back on its own."""


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
    """Ports of 127.0.0.1 that nobody listens on now, and that the kernel gives nobody who asks for any: neither a
    connection nor another's server takes one before it is used, nor while a server that comes back on it is away.
    Whoever is told which port to take still may: be ready to retry.
    """
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        return [_bound(each) for each in sockets]


def _bound(found: socket.socket) -> int:
    """The port that it has from now on, at random: other processes of tests look for some at the same time."""
    first = int(_GIVEN.read_text().split()[0]) if _GIVEN.exists() else 0
    for _ in range(100 if first > _LOWEST else 0):
        port = random.randrange(_LOWEST, first)
        if port not in _handed_out:
            with contextlib.suppress(OSError):
                found.bind(("127.0.0.1", port))
                _handed_out.add(port)
                return port
    found.bind(("127.0.0.1", 0))
    return int(found.getsockname()[1])


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
