"""The embedded store: one LMDB file, shared by all processes of a machine. The door; `open_store` is the way in.

A read is one LMDB read transaction that ends before the call returns (lmdb_reader.py); only a view's lasts. Writes are
lmdb_writer.py's, what they do to a transaction lmdb_group.py's, old states and the log lmdb_history.py's, rows
lmdb_rows.py's, indexes lmdb_indexes.py's, bytes lmdb_layout.py's, files lmdb_environment.py's.

A process opens a directory once; several processes may open the same. Everything in it can be rebuilt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from pathlib import Path

from apiserver.storage import lmdb_indexes as indexes
from apiserver.storage import lmdb_soundness as soundness
from apiserver.storage.declared import Declared
from apiserver.storage.doorbell import Doorbell
from apiserver.storage.lmdb_environment import LmdbEnvironment, StoreSettings
from apiserver.storage.lmdb_group import Under
from apiserver.storage.lmdb_looking import LookingEnvironment
from apiserver.storage.lmdb_reader import Reader
from apiserver.storage.lmdb_writer import WriterThread
from apiserver.storage.protocol import CheckRow, Op, Store, View

NOTHING = Declared()


def open_store(
    directory: Path,
    *,
    declared: Declared = NOTHING,
    sync: bool = True,
    start: int | None = None,
    settings: StoreSettings | None = None,
    ruined: Callable[[Path], object] = lambda _: None,
) -> Store:
    """Open or create the store in `directory` (made with mode 0700).

    `declared`: what it keeps up beside the objects. An index that is new here, or of another version, is built before
    this returns, in one transaction; one that is not declared any more goes.
    `sync` False: an answered write may be lost if the machine (not only the process) fails. `start`: the revision is at
    least this. What an older Treeplane stored there goes. Files that are no store, or not a whole one, are set
    aside with a warning, and so is what was written without `sync` before the machine started last. Raises OSError,
    NewerStore where a newer Treeplane wrote it, which stays as it is, LibraryError if this process has the
    directory open already, and Damaged if others use what is to be set aside.
    `ruined`: told that a commit failed in such a way that this process cannot use the directory any more, at the first
    use after it. Another process can; in this one everything raises LibraryError.
    """
    store = LmdbStore(directory, declared, sync, start, settings or StoreSettings())
    store.when_ruined(ruined)
    return store


@contextmanager
def looking_at(directory: Path, declared: Declared) -> Iterator[View]:
    """The store in `directory` as it is now, for one thread and until the end of the block; who serves from it is not
    disturbed. Raises one of lmdb_looking.UNREADABLE where there is none, or none that can be read as it is."""
    env = LookingEnvironment(directory, declared, StoreSettings())
    try:
        with env.read() as txn:
            yield Reader(env, lambda: nullcontext(txn))
    finally:
        env.close()


def _opened(
    directory: Path, declared: Declared, sync: bool, start: int | None, settings: StoreSettings
) -> LmdbEnvironment:
    """With files that can be trusted."""

    def environment() -> LmdbEnvironment:
        env = LmdbEnvironment(directory, declared, sync, start, settings)
        try:
            with env.write() as txn:
                indexes.complete(env, txn)
        except BaseException:
            env.close()
            raise
        return env

    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    hold = soundness.Hold(directory)
    try:
        env = soundness.mended(directory, hold, environment)
    except BaseException:
        hold.end()
        raise
    env.hold = hold
    return env


class _Handle(Reader):
    """See protocol.Store. `under`: of who has a role."""

    def __init__(self, env: LmdbEnvironment, bell: Doorbell, writer: WriterThread, under: Under | None) -> None:
        super().__init__(env, env.read)
        self._bell, self._writer, self._under = bell, writer, under

    @contextmanager
    def view(self) -> Iterator[View]:
        with self._env.read() as txn:
            yield Reader(self._env, lambda: nullcontext(txn))

    def write(self, *ops: Op) -> Future[list[int]]:
        return self._writer.write(ops, logged=True, under=self._under)

    def fill(self, *ops: Op) -> Future[list[int]]:
        return self._writer.write(ops, logged=False, under=self._under)

    def compact(self, keep: int) -> None:
        self._writer.compact(keep, self._under)

    def clear(self) -> None:
        self._writer.clear(self._under)

    def under(self, role: CheckRow, lost: Callable[[], None] = lambda: None) -> Store:
        return _Handle(self._env, self._bell, self._writer, Under.of(role, lost))

    def subscribe(self, ring: Callable[[], None]) -> Callable[[], None]:
        return self._bell.subscribe(ring)

    def close(self) -> None:
        """The store stays open."""


class LmdbStore(_Handle):
    """One that was opened, and is closed."""

    def __init__(
        self, directory: Path, declared: Declared, sync: bool, start: int | None, settings: StoreSettings
    ) -> None:
        env = _opened(directory, declared, sync, start, settings)
        bell = Doorbell(directory, env.news, settings.look_seconds)
        super().__init__(env, bell, WriterThread(env, bell, settings), None)
        self._closed = False

    def when_ruined(self, told: Callable[[Path], object]) -> None:
        """See open_store."""
        self._env.ruined = told

    def close(self) -> None:
        """Answers what was written, then closes. Calling it again does nothing; anything else raises afterwards."""
        if not self._closed:
            self._closed = True
            self._writer.close()
            self._bell.close()
            self._env.close()
