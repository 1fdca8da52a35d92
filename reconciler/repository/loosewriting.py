"""Objects that stand each in a file of its own, written by this process.

Called by write, for a handful. git's library would do it as well, but it keeps Python's other threads waiting while
each file is flushed to disk: a few milliseconds, in which a process that serves writes could judge some of them.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping
from pathlib import Path

from reconciler.repository import library
from reconciler.repository.packwriting import flush_names, put_file


def put(directory: Path, objects: Mapping[str, bytes]) -> None:
    """Into the directory of a repository's objects, by their names; what is hashed of each for its name is what is
    stored. On disk where this process flushes what it writes to git. One that is there already counts as written now,
    so that nobody who drops what is old drops it. Raises OSError."""
    places = set()
    for name, data in objects.items():
        path = directory / name[:2] / name[2:]
        try:
            os.utime(path)
        except OSError:  # it is not there, or somebody else's
            path.parent.mkdir(exist_ok=True)
            put_file(path, zlib.compress(data, 1), "tmp_obj_")
            places.add(path.parent)
    if places and library.flushes():
        for place in (directory, *places):
            flush_names(place)
