"""Starts API workers as processes of their own.

Called by `up`, which supervises them, and by tests. Imports nothing of the server, so that a parent stays small.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys

from apiserver.logs.outlets import Outlet
from apiserver.settings import ServerSettings


def listen(host: str, port: int) -> socket.socket:
    """A bound socket for workers to share; port 0 takes a free one. Raises OSError (EADDRINUSE: the port is taken)."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
    except OSError:
        listener.close()
        raise
    return listener


def spawn(
    settings: ServerSettings, listener: socket.socket, name: str = "api-1", outlet: Outlet | None = None
) -> subprocess.Popen[bytes]:
    """Start one worker that accepts on `listener`. SIGTERM ends it cleanly; so does the end of this process. `name`:
    see metrics/place; no two that run have the same.

    The worker's standard input is the pipe by which it notices that: the caller leaves `Popen.stdin` alone. `outlet`:
    for what it logs; None: its standard error, which is this process's.
    """
    number = listener.fileno()
    return subprocess.Popen(
        [sys.executable, "-m", "apiserver", "--listen-fd", str(number), "--parent-fd", "0", "--process", name],
        stdin=subprocess.PIPE,
        stderr=outlet.error if outlet else None,
        pass_fds=(number, outlet.pipe) if outlet else (number,),
        # A group of its own: Ctrl-C on the terminal is for the parent, which then ends its workers in order.
        process_group=0,
        env={**os.environ, **(outlet.logging.variables() if outlet else {}), "TREEPLANE_SETTINGS": settings.to_json()},
    )
