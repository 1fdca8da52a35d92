"""A TCP proxy on loopback that can swallow: it takes connections and bytes, and nothing comes of them.

As a firewall that drops packets, or a route that is gone. What is swallowed stays so; what begins after `release` goes
through again.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

from realclusters.processes import free_ports


class Proxy:
    """In front of `port` of this machine (0: there is nothing, so swallow from the beginning)."""

    def __init__(self, port: int = 0) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.taken = 0
        """Connections so far."""
        self._open = threading.Event()
        self._swallowed = threading.Event()
        if port:
            self._open.set()
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def swallow(self) -> None:
        """From now on nothing passes, of no connection."""
        self._open.clear()

    def release(self) -> None:
        """What is connected from now on passes."""
        self._open.set()

    def drop(self) -> None:
        """Ends what is connected."""
        self._end(*self._sockets)

    def close(self) -> None:
        self._end(self._listener, *self._sockets)

    @staticmethod
    def _end(*sockets: socket.socket) -> None:
        for each in sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            passes = self._open.is_set()
            self._sockets.append(client)
            self.taken += 1  # whoever sees this may release: of this connection it is decided
            if passes:
                server = socket.create_connection(("127.0.0.1", self._target))
                self._sockets.append(server)
                alive = threading.Event()
                alive.set()
                for here, there in ((client, server), (server, client)):
                    threading.Thread(target=self._pump, args=(here, there, alive), daemon=True).start()

    def _pump(self, here: socket.socket, there: socket.socket, alive: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := here.recv(65536):
                if not self._open.is_set():
                    alive.clear()
                if alive.is_set():
                    there.sendall(data)
            if alive.is_set():
                there.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def swallowing(port: int = 0) -> Iterator[Proxy]:
    proxy = Proxy(port)
    try:
        yield proxy
    finally:
        proxy.close()


@contextlib.contextmanager
def git_daemon(folder: Path, *more: str) -> Iterator[int]:
    """Serves the repositories below `folder` as `git://127.0.0.1:<port>/…`, for fetch and push; the port. `more`:
    further options."""
    [port] = free_ports(1)
    daemon = subprocess.Popen(
        ["git", "daemon", "--export-all", "--enable=receive-pack", "--reuseaddr", *more, "--listen=127.0.0.1",
         f"--port={port}", f"--base-path={folder}", str(folder)],
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            assert daemon.poll() is None, "git daemon ended"
        yield port
    finally:
        daemon.terminate()
        daemon.wait()
