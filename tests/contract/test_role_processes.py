"""A role among processes: the kernel's lock is free when a process has ended, however it did, and not before; a token
keeps out who stood still while another took over."""

from __future__ import annotations

import inspect
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from apiserver.model.keys import Key
from apiserver.storage.protocol import Store
from apiserver.storage.roles import RoleLock

pytestmark = pytest.mark.parametrize("implementation", ["lmdb"], indirect=True)
"""The implementations that several processes share."""

AT = Key("written", "c", "", "by")

# Takes the role, and writes what it is told to until it has lost it: then it ends with a line.
HOLDING = """
import os, subprocess, sys
from pathlib import Path
from {module} import {function} as opener
from apiserver.model.keys import Key
from apiserver.storage.protocol import Put, RoleLost
from apiserver.storage.roles import Role, RoleLock, take
folder = Path(sys.argv[1])
lock = RoleLock(folder / "roles", "loading")
if not lock.take(wait=False):
    print("waits for", lock.whose().split()[0], flush=True)
    lock.take()
child = subprocess.Popen(["sleep", "3600"])
store = opener(folder / "store", sync=False)
role = Role("loading", take(store, ["loading"]))
mine = role.on(store)
print("has", role.token, child.pid, flush=True)
for line in sys.stdin:
    try:
        print("wrote", *mine.write(Put(Key("written", "c", "", "by"), line.strip().encode())).result(), flush=True)
    except RoleLost as error:
        print(error, flush=True)
        os._exit(5)
"""


class Process:
    """One that wants the role."""

    def __init__(self, implementation: Callable[..., Store], folder: Path) -> None:
        module = inspect.getmodule(implementation)
        assert module is not None
        code = HOLDING.format(module=module.__name__, function=implementation.__name__)
        root = Path(__file__).parents[2]
        self.popen = subprocess.Popen(
            [sys.executable, "-c", code, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=root,
        )
        self.child = 0

    def says(self) -> list[str]:
        assert self.popen.stdout
        return self.popen.stdout.readline().split()

    def has(self) -> int:
        """The token, once it has the role."""
        word, token, child = self.says()
        assert word == "has"
        self.child = int(child)
        return int(token)

    def tell(self, text: str) -> None:
        assert self.popen.stdin
        self.popen.stdin.write(f"{text}\n")
        self.popen.stdin.flush()

    def write(self, text: str) -> None:
        self.tell(text)
        assert self.says()[0] == "wrote"

    def stand_still(self) -> None:
        self.popen.send_signal(signal.SIGSTOP)
        while psutil.Process(self.popen.pid).status() != psutil.STATUS_STOPPED:
            pass

    def end(self) -> None:
        self.popen.kill()
        self.popen.wait()
        for pipe in filter(None, (self.popen.stdin, self.popen.stdout)):
            with suppress(BrokenPipeError):
                pipe.close()
        if self.child:
            psutil.Process(self.child).kill()


@pytest.fixture
def process(implementation: Callable[..., Store], tmp_path: Path) -> Iterator[Callable[[], Process]]:
    made: list[Process] = []

    def new() -> Process:
        made.append(Process(implementation, tmp_path))
        return made[-1]

    yield new
    for each in made:
        each.end()


def free(tmp_path: Path) -> bool:
    lock = RoleLock(tmp_path / "roles", "loading")
    try:
        return lock.take(wait=False)
    finally:
        lock.end()


def value(store: Store) -> bytes | None:
    found = store.get(AT)
    return found.value if found is not None else None


def test_a_role_is_free_when_its_process_was_killed(
    process: Callable[[], Process], opened: Callable[..., Store], tmp_path: Path
) -> None:
    """Although what that had started runs on."""
    first = process()
    token = first.has()
    assert not free(tmp_path)
    second = process()
    assert second.says() == ["waits", "for", str(first.popen.pid)]
    first.write("first")
    first.popen.kill()
    assert second.has() > token
    assert psutil.pid_exists(first.child)
    second.write("second")
    assert value(opened()) == b"second"


def test_who_stands_still_keeps_the_role_until_he_is_killed(process: Callable[[], Process], tmp_path: Path) -> None:
    first = process()
    token = first.has()
    first.stand_still()
    second = process()
    assert second.says() == ["waits", "for", str(first.popen.pid)]
    assert not free(tmp_path)
    first.popen.kill()  # as `up` does with one that does not answer
    assert second.has() > token
    second.write("second")


def test_who_stood_still_while_another_took_over_writes_nothing_and_ends(
    process: Callable[[], Process], opened: Callable[..., Store], tmp_path: Path
) -> None:
    """His lock was worth nothing: somebody took its file away."""
    first = process()
    token = first.has()
    first.write("first")
    first.stand_still()
    (tmp_path / "roles" / "loading.lock").unlink()
    second = process()
    assert second.has() > token
    second.write("second")
    first.tell("first again")
    first.popen.send_signal(signal.SIGCONT)
    assert first.says() == ["the", "role", "loading", "is", "another", "process's", "by", "now"]
    assert first.popen.wait(60) == 5
    assert value(opened()) == b"second"
    second.write("third")
