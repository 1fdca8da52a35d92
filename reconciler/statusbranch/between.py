"""When a view of the store is of one commit: between two that are on their way into it.

Made by the wiring (commands/). While a commit is on its way, some workspaces are ahead of what would be named. In one
process the loader holds a lock meanwhile (`Between`). Where another process loads, a row says so (`Stepping`, for the
loader) and is looked for in the very view that is taken (`Beyond`). A loader that goes from commit to commit without a
pause waits for who asks, a moment and no longer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

from apiserver.model.tables import Table
from apiserver.storage.protocol import DeleteRow, PutRow, Store, View

_STEPPING, _ASKED = "stepping", "asked"
_MOMENT = 1.0
"""Seconds for which the loader waits for who asked for a view."""
_SOON, _LATER = 0.002, 0.05
"""Seconds between two looks: at first, and when it takes long."""


class Between:
    """In one process. `stepping`: held while a commit is on its way (Loader.stepping). `loading`: set by who loads
    while he steps through commits."""

    def __init__(self, stepping: AbstractContextManager[Any] | None = None) -> None:
        self.loading = threading.Event()
        self._stepping = stepping or nullcontext()

    def is_loading(self) -> bool:
        """Whether commits are being loaded: what can wait is done after them."""
        return self.loading.is_set()

    @contextmanager
    def view(self, store: Store) -> Iterator[View]:
        """The store between two commits: all workspaces are at the one that would be named.

        Only taking it waits for the loader, and the loader never for what is done with it. LMDB keeps all pages that it
        shows, so the store's file grows by what is written until it is let go of: that is one rendering's time (seconds
        for what a load of a hundred thousand workspaces leaves), of one view at a time, and the next writes take those
        pages again.
        """
        with ExitStack() as stack:
            with self._stepping:
                view = stack.enter_context(store.view())
            yield view


class Stepping:
    """The loader's half where others are another process: instead of its lock."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __enter__(self) -> None:
        # On disk before what is written after it; nobody waits for that.
        self._store.write(PutRow(Table.TENURE, _STEPPING, b""))

    def __exit__(self, *_: object) -> None:
        over = self._store.write(DeleteRow(Table.TENURE, _STEPPING))
        if self._asked() is None:
            return
        over.result()
        until = time.monotonic() + _MOMENT
        while self._asked() is not None:
            if time.monotonic() > until:
                self._store.write(DeleteRow(Table.TENURE, _ASKED)).result()  # who asked is gone, perhaps
            time.sleep(_SOON)

    def settle(self) -> None:
        """Called now and then between two commits: what could not be written for want of room is written later."""
        if self._store.get_row(Table.TENURE, _STEPPING) is not None:
            self._store.write(DeleteRow(Table.TENURE, _STEPPING))

    def _asked(self) -> bytes | None:
        return self._store.get_row(Table.TENURE, _ASKED)


class Beyond(Between):
    """The other half. `store`: as who asks writes to it. `ended`: whether there is nothing to wait for any more."""

    def __init__(self, store: Store, ended: Callable[[], bool] = lambda: False) -> None:
        super().__init__()
        self._store, self._ended = store, ended

    def is_loading(self) -> bool:
        return self._store.get_row(Table.TENURE, _STEPPING) is not None

    @contextmanager
    def view(self, store: Store) -> Iterator[View]:
        asked, pause = False, _SOON
        while True:
            with store.view() as view:
                if view.get_row(Table.TENURE, _STEPPING) is None:
                    if asked:
                        self._store.write(DeleteRow(Table.TENURE, _ASKED)).result()
                    yield view
                    return
            if self._ended():
                raise RuntimeError("the process that loads has ended in the middle of a commit")
            if not asked:
                asked = True
                self._store.write(PutRow(Table.TENURE, _ASKED, b"")).result()
            time.sleep(pause)
            pause = min(2 * pause, _LATER)


def forget(store: Store) -> None:
    """What a loader that was killed left: called by the next one, while nobody else is at work."""
    left = [row for row in (_STEPPING, _ASKED) if store.get_row(Table.TENURE, row) is not None]
    if left:
        store.write(*(DeleteRow(Table.TENURE, row) for row in left)).result()
