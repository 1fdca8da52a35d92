"""A role: what one process at a time may do to what a store is for. Which there are is the reconciler's.

Called by the reconciler's processes (reconciler/commands/roles). Who has a role has two things:

- A *lock* of the kernel on a file, which is free when the process ends, however it ends, and is never taken from one
  that lives. A process that stands still keeps it: another gets the role once somebody has ended that one.
- A *token*, a row of the store, which is another one for each who took the role, and never for one who goes on. Each
  write of the role is done under it (Store.under), so whatever the lock was worth (its file was taken away, or lies on
  a disk whose locks lapse), who comes back after another took the role writes nothing any more.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from apiserver.model.tables import Table
from apiserver.storage.protocol import ABSENT, CheckRow, PutRow, RoleLost, RowConflict, Store, View


class RoleLock:
    """The kernel's half: of the role's file in a directory, which is made with mode 0700."""

    def __init__(self, directory: Path, role: str) -> None:
        self._directory, self._file = directory, directory / f"{role}.lock"
        self._fd = -1

    def take(self, *, wait: bool = True) -> bool:
        """Whether this process has it now. `wait`: until who has it lets go, or has ended."""
        while self._fd < 0:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            # No child of this process has it: a file is closed where another program begins.
            fd = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
                if _stands(self._file, fd):
                    os.truncate(fd, 0)
                    os.pwrite(fd, f"{os.getpid()} {secrets.token_hex(8)}\n".encode(), 0)
                    self._fd = fd
                    return True
            except BlockingIOError:
                return False
            finally:
                if fd != self._fd:
                    os.close(fd)
        return True

    def stands(self) -> bool:
        """Whether this process has it, and its file is there still: else another process may have it as well."""
        return self._fd >= 0 and _stands(self._file, self._fd)

    def whose(self) -> str:
        """Who has it: the number of the process and a word that no other has; "" where nobody has it."""
        try:
            with self._file.open("rb") as file:
                if self._fd < 0:
                    try:
                        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                    except BlockingIOError:
                        pass
                    else:
                        return ""
                return file.read(64).decode("ascii", "replace").strip()
        except OSError:
            return ""

    def end(self) -> None:
        """Lets go of it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class Role:
    """The store's half: a role that this process took. `lost`: called, from any thread, when it is seen that another
    has taken it since."""

    def __init__(self, name: str, token: int, lost: Callable[[], None] = lambda: None) -> None:
        self.name, self.token, self._lost = name, token, lost

    def on(self, store: Store) -> Store:
        """The store that the role was taken on, or one that belongs to it and was opened since, as this role writes to
        it. Raises RoleLost where another took the role there."""
        while (before := _token(store, self.name)) != self.token:
            if before > self.token:
                self._lost()
                raise RoleLost(self.name)
            with suppress(RowConflict):
                store.write(_swap(self.name, before, self.token)).result()
        return store.under(CheckRow(Table.ROLES, self.name, _text(self.token)), self._lost)

    def check(self, view: View) -> None:
        """For what is written elsewhere than to the store. Raises RoleLost."""
        if _token(view, self.name) != self.token:
            self._lost()
            raise RoleLost(self.name)


def take(store: Store, names: Sequence[str]) -> int:
    """Takes roles from whoever had them, all or none; their token. Whoever calls has the locks."""
    while True:
        rows = store.get_rows(Table.ROLES, names)
        before = [int(row or b"0") for row in rows]
        # Greater than any, also where the store was lost meanwhile and knows of none.
        token = max(time.time_ns() // 1000, *(each + 1 for each in before))
        puts = [_swap(name, was, token) for name, was in zip(names, before, strict=True)]
        try:
            store.write(*puts).result()
        except RowConflict:
            continue
        return token


def _token(view: View, role: str) -> int:
    """Of who has a role; 0 where nobody ever had."""
    return int(view.get_row(Table.ROLES, role) or b"0")


def _text(token: int) -> bytes:
    return b"%d" % token


def _swap(role: str, before: int, token: int) -> PutRow:
    """Puts a token in the place of another one; 0: of none."""
    return PutRow(Table.ROLES, role, _text(token), _text(before) if before else ABSENT)


def _stands(file: Path, fd: int) -> bool:
    """Whether an open file is the one that stands there: who had the lock before may have taken it away."""
    try:
        there, here = file.stat(), os.fstat(fd)
    except FileNotFoundError:
        return False
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)
