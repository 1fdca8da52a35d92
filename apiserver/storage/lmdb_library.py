"""The door to LMDB: the one module that imports its binding, which the others of the store ask by these names.

`open_files` is for whoever serves from a store, `look_only` for whoever looks at one that others may serve from,
`read_only` for whoever only looks whether it can be read.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final, TypeAlias

import lmdb

Files: TypeAlias = lmdb.Environment
"""An open directory. A process opens one once."""
Transaction: TypeAlias = "lmdb.Transaction[bytes]"
Part: TypeAlias = "lmdb._Database"
"""One of the sorted maps of which a file consists."""

LibraryError: Final = lmdb.Error
"""What every refusal of LMDB's is."""
Full: Final = lmdb.MapFullError
"""The file is as large as it may become."""
Resized: Final = lmdb.MapResizedError
"""Another process made the file larger than this one has mapped."""
Ruined: Final = lmdb.PanicError
"""A commit of this process failed at its last page. Whatever the process asks for from then on is refused so; the files
are as they were before, and another process can use them."""
NO_STORE: Final = (
    lmdb.CorruptedError,
    lmdb.InvalidError,
    lmdb.PageNotFoundError,
    Ruined,
    lmdb.VersionMismatchError,
    lmdb.IncompatibleError,
)
"""What opening raises where the files are no store, or not a whole one."""

DATA: Final = "data.mdb"
"""The file in which all of a store is."""
_PARTS: Final = 8
_SPARE: Final = 32
"""Read transactions that are kept for the next reader."""


def open_files(directory: str, *, map_size: int, readers: int, sync: bool) -> Files:
    """Opened for reading and writing, made where they are missing. `map_size`: bytes that they may grow to; `readers`:
    read transactions at one moment, of all processes."""
    found = lmdb.open(
        directory,
        map_size=map_size,
        max_readers=readers,
        max_dbs=_PARTS,
        max_spare_txns=_SPARE,
        sync=sync,
        readahead=False,
        mode=0o700,  # the directory's; LMDB takes the execute bits off for its files
    )
    return _alone(directory, found)


def look_only(directory: str, *, map_size: int) -> Files:
    """Opened for reading, beside whoever serves from it."""
    found = lmdb.open(directory, map_size=map_size, readonly=True, max_dbs=_PARTS, create=False, readahead=False)
    return _alone(directory, found)


def read_only(directory: str) -> Files:
    """Opened to look through, without a lock: nobody else has them. Of parts there may be more than today's."""
    return lmdb.open(directory, readonly=True, lock=False, max_dbs=2 * _PARTS, create=False)


def _alone(directory: str, files: Files) -> Files:
    """What a process starts has no handle of them: LMDB's own, of the data, goes along where nobody says otherwise, and
    uvloop leaves to a git all that does."""
    data = Path(directory, DATA).stat()
    for each in Path("/dev/fd").iterdir():
        with contextlib.suppress(OSError):  # that of the listing itself is closed by now
            if os.path.samestat(os.fstat(int(each.name)), data):
                os.set_inheritable(int(each.name), False)
    return files
