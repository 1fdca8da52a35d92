"""The end of a process together with its parent, whatever it is doing just then.

Called first of all by API workers and the reconciler. The parent holds the other end of a pipe, writes nothing to it,
and lets go of it when it ends, however it ends.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from typing import NoReturn

log = logging.getLogger(__name__)


def end_with_parent(pipe: int, grace: float) -> None:
    """From now on this process gets SIGTERM when `pipe` ends. If it still runs `grace` seconds later it is killed, with
    what it has started in its group: threads that wait for somebody who has ended too would hold it for long."""
    threading.Thread(target=_wait, args=(pipe, grace), name="parent", daemon=True).start()


def leave(code: int = 0) -> NoReturn:
    """The end of a process that has put everything in order; no thread that still waits for something is waited for."""
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def _wait(pipe: int, grace: float) -> None:
    try:
        while os.read(pipe, 1024):
            pass
    except OSError as error:
        log.error("the pipe of the parent cannot be read: %s", error)
    timer = threading.Timer(grace, _kill)
    timer.daemon = True
    timer.start()
    os.kill(os.getpid(), signal.SIGTERM)


def _kill() -> None:
    log.error("killed: its parent ended, and it did not")
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
