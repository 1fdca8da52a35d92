"""The address that `up` listens on: whoever has it is named, and who is about to let go of it is waited for."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from reconciler.commands.failure import BUSY, Failure
from reconciler.commands.preparing import listening
from reconciler.commands.settings import Address

LISTENS = """
import socket, sys
found = socket.socket()
found.bind(("127.0.0.1", 0))
found.listen()
print(found.getsockname()[1], flush=True)
sys.stdin.read()
"""


@pytest.fixture
def worker() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", LISTENS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as it:
        yield it
        it.kill()


def address(worker: subprocess.Popen[str]) -> Address:
    assert worker.stdout is not None
    return Address("127.0.0.1", int(worker.stdout.readline()))


def test_a_worker_of_before_is_waited_for(worker: subprocess.Popen[str]) -> None:
    """It ends once it notices that its parent was killed; nobody has to start twice for that."""
    where, found = address(worker), list[socket.socket]()
    waiting = threading.Thread(target=lambda: found.append(listening(where, [worker.pid], 60)))
    waiting.start()
    worker.kill()
    waiting.join(60)
    [listener] = found
    with listener:
        assert listener.getsockname()[1] == where.port


def test_one_that_does_not_end_is_named(worker: subprocess.Popen[str]) -> None:
    with pytest.raises(Failure, match=rf"127.0.0.1:\d+ is taken by \S+ \(pid {worker.pid}\)") as told:
        listening(address(worker), [worker.pid], 0.1)
    assert told.value.exit_code == BUSY
    assert "--listen" in told.value.message


@pytest.mark.parametrize("left", [[], [os.getpid()]], ids=["none", "another"])
def test_nobody_else_is_waited_for(worker: subprocess.Popen[str], left: list[int]) -> None:
    with pytest.raises(Failure, match=rf"pid {worker.pid}"):
        listening(address(worker), left, 3600)
