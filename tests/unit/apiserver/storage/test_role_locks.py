"""The files behind the locks of roles."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

from apiserver.storage.roles import RoleLock

Eventually = Callable[..., object]


def test_a_lock_is_one_processs(tmp_path: Path) -> None:
    first, second, other = (RoleLock(tmp_path / "roles", name) for name in ("loading", "loading", "status"))
    assert [first.take(wait=False), second.take(wait=False), other.take(wait=False)] == [True, False, True]
    assert first.take(wait=False), "it has it"
    first.end()
    assert second.take(wait=False)
    second.end()
    other.end()


def test_the_files_are_the_servers_alone(tmp_path: Path) -> None:
    lock = RoleLock(tmp_path / "roles", "loading")
    assert lock.whose() == ""
    assert lock.take()
    number, word = lock.whose().split()
    assert (number, len(word)) == (str(os.getpid()), 16)
    assert RoleLock(tmp_path / "roles", "loading").whose() == lock.whose()
    assert (tmp_path / "roles").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "roles" / "loading.lock").stat().st_mode & 0o777 == 0o600
    lock.end()
    assert lock.whose() == "", "it is free"
    assert lock.take()
    assert lock.whose().split()[1] != word
    lock.end()


def test_who_waited_for_a_file_that_was_taken_away_has_the_one_that_stands_there(
    tmp_path: Path, eventually: Eventually
) -> None:
    """Else two have the role: who waited, and who comes next."""
    first, waiting, last = (RoleLock(tmp_path, "loading") for _ in range(3))
    assert first.take()
    thread = threading.Thread(target=waiting.take, daemon=True)
    thread.start()
    file = tmp_path / "loading.lock"
    eventually(lambda: f"{file.stat().st_ino}" in Path("/proc/locks").read_text() and _waiters(file) == 1)
    file.unlink()
    first.end()
    thread.join(60)
    assert not last.take(wait=False)
    waiting.end()


def _waiters(file: Path) -> int:
    inode = f":{file.stat().st_ino} "
    return sum(1 for line in Path("/proc/locks").read_text().splitlines() if inode in line and "->" in line)
