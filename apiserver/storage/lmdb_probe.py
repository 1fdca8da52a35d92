"""Reads all that an LMDB store holds, and ends in peace: `python -m apiserver.storage.lmdb_probe DIRECTORY`.

Run by lmdb_soundness.py in a process of its own, since one that reads behind the end of a mapped file is killed.
"""

from __future__ import annotations

import sys
from collections import deque
from typing import Final

from apiserver.storage.lmdb_library import LibraryError, read_only

BROKEN: Final = 3
"""How it ends where LMDB itself says so. Any other failure of its own (no memory, no such module) says nothing."""


def main(directory: str) -> None:
    with read_only(directory) as env, env.begin() as txn:
        names = list(txn.cursor().iternext(values=False))
        for table in [env.open_db(name, txn=txn, create=False) for name in names]:
            for key, value in txn.cursor(db=table):
                deque((key, value[:1], value[-1:]), maxlen=0)


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except LibraryError:
        sys.exit(BROKEN)
