"""Whether commits are being loaded: who can wait does so until they are.

Made by the wiring (commands/); the holder says it, and the status writer and the managers ask. What is read meanwhile
is right all the same: this tells when it is worth reading. Where another process loads, a row says so.
"""

from __future__ import annotations

import threading

from apiserver.model.tables import Table
from apiserver.storage.protocol import DeleteRow, PutRow, Store

_ROW = "loading"


class UnderWay:
    """In one process; held by who loads."""

    def __init__(self) -> None:
        self._is_so = threading.Event()

    def __enter__(self) -> None:
        self._is_so.set()

    def __exit__(self, *_: object) -> None:
        self._is_so.clear()

    def is_so(self) -> bool:
        return self._is_so.is_set()


class UnderWayThere(UnderWay):
    """Between two. `store`: as who loads writes to it; who asks only reads."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store

    def __enter__(self) -> None:
        # On disk before what is written after it; nobody waits for that.
        self._store.write(PutRow(Table.TENURE, _ROW, b""))

    def __exit__(self, *_: object) -> None:
        self._store.write(DeleteRow(Table.TENURE, _ROW))

    def is_so(self) -> bool:
        return self._store.get_row(Table.TENURE, _ROW) is not None

    def settle(self) -> None:
        """Called now and then while nothing is loaded: what could not be written for want of room is written later."""
        if self.is_so():
            self._store.write(DeleteRow(Table.TENURE, _ROW))


def forget(store: Store) -> None:
    """What a loader that was killed left: called by the next one, while nobody else is at work."""
    if store.get_row(Table.TENURE, _ROW) is not None:
        store.write(DeleteRow(Table.TENURE, _ROW)).result()
