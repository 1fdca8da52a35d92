"""A store that is only looked at, whether or not anybody serves from it: nothing in its directory is changed but the
table of readers, in which LMDB notes who reads.

Called through lmdb.looking_at, for `treeplane status` on a data directory. What a start would mend or build is not done
here: it is told, as Damaged.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from apiserver.storage import lmdb_soundness as soundness
from apiserver.storage.declared import Declared
from apiserver.storage.lmdb_environment import FORMAT, FORMAT_KEY, STATE, LmdbEnvironment, StoreSettings, refuse_newer
from apiserver.storage.lmdb_library import DATA, LibraryError, look_only


class LookingEnvironment(LmdbEnvironment):
    """Raises Damaged where a start would not believe these files, LibraryError and OSError where they cannot be
    opened."""

    def __init__(self, directory: Path, declared: Declared, settings: StoreSettings) -> None:
        self._remember_nothing(directory, declared)
        self.lmdb = look_only(str(directory), map_size=settings.map_size)
        try:
            soundness.check_pages(directory, self.lmdb)
            self._open_tables(None, create=False)
            with self.lmdb.begin() as txn:
                self._check(declared, self.built(txn), self.format(txn), self.boot(txn))
                self.state(txn)
                self.marked = declared.marked
        except BaseException:
            self.lmdb.close()
            raise

    @staticmethod
    def _check(declared: Declared, built: dict[str, int], found: bytes | None, boot: bytes | None) -> None:
        if found != FORMAT:
            raise soundness.Damaged(f"another version of Treeplane wrote it (format {(found or b'none').decode()})")
        if boot is not None and boot != soundness.boot():
            raise soundness.Damaged("it was written without syncing, before the machine started last")
        if any(built.get(index.name) != index.version for index in declared.indexes):
            raise soundness.Damaged("another version of Treeplane wrote it, and the next start brings it up to date")


UNREADABLE = (*soundness.UNREADABLE, LibraryError, OSError)
"""What opening one raises."""


def check_format(directory: Path) -> None:
    """For a start, before anything is started. Raises NewerStore for a store of a newer Treeplane; one that is missing,
    or cannot be read, is for whoever opens it to begin or to set aside."""
    if not (directory / DATA).exists():
        return
    found = None
    with contextlib.suppress(*UNREADABLE):
        env = look_only(str(directory), map_size=StoreSettings().map_size)
        with contextlib.closing(env):
            soundness.check_pages(directory, env)
            state = env.open_db(STATE, create=False)
            with env.begin() as txn:
                found = txn.get(FORMAT_KEY, db=state)
    refuse_newer(directory, found)
