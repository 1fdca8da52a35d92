"""The processes of one server: started again when they end, and ended when they do not answer."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from reconciler.commands.children import Children

Eventually = Callable[..., object]

SPEAKING = """
import itertools, time
for number in itertools.count():
    print(number, flush=True)
    time.sleep(0.02)
"""
SILENT = "import time; time.sleep(60)"


def started(code: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0
    )


@pytest.fixture
def children(eventually: Eventually) -> Iterator[Children]:
    made = Children(patience=0.5)
    yield made
    made.stop(1.0)
    for child in made.children:
        if child.process is not None:
            out = child.process.stdout if child.heard is not None else None
            eventually(lambda out=out: out is None or out.closed, what="whoever listens has read all and closes it")
            child.process.communicate()


def test_one_that_stands_still_is_killed_and_started_again(children: Children, eventually: Eventually) -> None:
    heard = threading.Event()
    child = children.add("the reconciler", lambda: started(SPEAKING), lambda _: heard.set())
    assert heard.wait(60)
    first, said = child.process, []
    assert first is not None
    first.send_signal(signal.SIGSTOP)

    def again() -> bool:
        said.extend(children.look())
        return child.process not in (None, first)

    eventually(again)
    assert said == [
        "the reconciler has not answered for 0 s: it is killed",
        "the reconciler ended with -9; it is started again in 1 s",
    ]
    heard.clear()
    assert heard.wait(60)


def test_one_that_speaks_and_one_that_need_not_stay(children: Children, eventually: Eventually) -> None:
    lines: list[bytes] = []
    speaking = children.add("the reconciler", lambda: started(SPEAKING), lines.append)
    silent = children.add("API worker 1", lambda: started(SILENT))
    children.patience = 1.5
    processes, said = [speaking.process, silent.process], []
    while silent.silent <= 2 * children.patience:
        before = len(lines)
        eventually(lambda before=before: len(lines) > before, 60, "it speaks between two looks")
        children.looked -= 1.0  # of which one counts as a second at most
        said.extend(children.look())
    assert said == []
    assert [speaking.process, silent.process] == processes


def test_a_parent_that_stood_still_itself_kills_nobody(children: Children) -> None:
    """A machine that was suspended, say: nobody could be heard meanwhile."""
    child = children.add("the reconciler", lambda: started(SILENT), lambda _: None)
    children.patience = 60.0
    children.looked -= 3600.0
    assert children.look() == []
    assert child.silent <= 1.0
