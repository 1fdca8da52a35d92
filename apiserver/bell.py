"""A bell that one process of a server rings, so that another looks at something at once instead of at its next look.

A datagram on a socket in the data directory, which its owner alone may write to. It carries no order: to ring twice is
to ring once, a ring that nobody hears is lost, and whoever hears it looks for himself what is so. Who may ring is for
the callers to say (push, endpoints/reconciling), and how often something is looked at for who listens.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
from collections.abc import Callable
from pathlib import Path

from apiserver.localsocket import address

log = logging.getLogger(__name__)

_STOP = b"\0stop"
_BELL = (socket.AF_UNIX, socket.SOCK_DGRAM)
LOOK = "look.sock"
"""Of the reconciler's process: a repository is to be looked at, the fleet's, or the one that the workspace has its
content from whose path the ring is about."""
LONGEST = 4096
"""Bytes of what a ring is about."""


def ring(directory: Path, name: str, about: bytes = b"") -> None:
    """Ring, and say about what. Without a listener nothing happens; nor with one that has more to hear than it can."""
    with contextlib.suppress(OSError), address(directory, name) as at, socket.socket(*_BELL) as bell:
        bell.setblocking(False)
        bell.sendto(about[:LONGEST], at)


def listen(directory: Path, name: str, heard: Callable[[bytes], None]) -> Callable[[], None]:
    """Call `heard` (in a thread of its own) after each ring, with what it is about; several close together may be one.

    Returns what ends it. Raises OSError where the socket cannot be made.
    """
    bell = socket.socket(*_BELL)
    with address(directory, name) as at:
        # Left over from a listener that was killed.
        (directory / name).unlink(missing_ok=True)
        bell.bind(at)
    (directory / name).chmod(0o600)
    thread = threading.Thread(target=_listen, args=(bell, heard), name=name.replace(".", "-"), daemon=True)
    thread.start()

    def stop() -> None:
        with contextlib.suppress(OSError), address(directory, name) as at, socket.socket(*_BELL) as ringer:
            ringer.sendto(_STOP, at)
        thread.join(timeout=5)
        bell.close()
        (directory / name).unlink(missing_ok=True)

    return stop


def _listen(bell: socket.socket, heard: Callable[[bytes], None]) -> None:
    while (about := bell.recv(LONGEST)) != _STOP:
        try:
            heard(about)
        except Exception:
            # The listener outlives one failed look; the next ring is heard again.
            log.exception("the bell was not followed up")
