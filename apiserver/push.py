"""The bell that a push to the hosted repository rings, so that the reconciler looks at once.

`notify_push` is called by the git endpoint of any API worker, `listen_push` by the reconciler. A bell lost is harmless:
the reconciler also watches the refs.
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

NAME = "push.sock"
_STOP = b"stop"
_BELL = (socket.AF_UNIX, socket.SOCK_DGRAM)


def notify_push(data_dir: Path) -> None:
    """Ring. Without a listener nothing happens."""
    with contextlib.suppress(OSError), address(data_dir, NAME) as at, socket.socket(*_BELL) as bell:
        bell.setblocking(False)
        bell.sendto(b"push", at)


def listen_push(data_dir: Path, callback: Callable[[], None]) -> Callable[[], None]:
    """Call `callback` (in a thread of its own) after each push; several close together may ring once.

    Returns what ends it. Raises OSError where the socket cannot be made.
    """
    bell = socket.socket(*_BELL)
    with address(data_dir, NAME) as at:
        # Left over from a listener that was killed.
        (data_dir / NAME).unlink(missing_ok=True)
        bell.bind(at)
    (data_dir / NAME).chmod(0o600)
    thread = threading.Thread(target=_listen, args=(bell, callback), name="push-bell", daemon=True)
    thread.start()

    def stop() -> None:
        with contextlib.suppress(OSError), address(data_dir, NAME) as at, socket.socket(*_BELL) as ringer:
            ringer.sendto(_STOP, at)
        thread.join(timeout=5)
        bell.close()
        (data_dir / NAME).unlink(missing_ok=True)

    return stop


def _listen(bell: socket.socket, callback: Callable[[], None]) -> None:
    while bell.recv(16) != _STOP:
        try:
            callback()
        except Exception:
            # The listener outlives one failed look; the next push rings again.
            log.exception("the push was not followed up")
