"""The watch hub: follows a store's log once per process and hands each change to the watchers it concerns.

One per store. Watchers are indexed by (resource, cluster), so a change costs what its own watchers cost; an event is
encoded once per form and shared, and what one turn of the event loop brings a watcher goes out in one write. A watcher
buffers while its connection is busy and is dropped when it lags too far: it comes back with the last revision it saw
and loses nothing. Everything here runs in the event loop's thread, except the store's bell.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from apiserver.endpoints.watcher import Event, Watcher
from apiserver.model.failures import described
from apiserver.storage.protocol import Change, Compacted, Store

log = logging.getLogger(__name__)

CHUNK = 1000
"""Log entries dispatched in one go of the event loop."""
BOOKMARK_SECONDS = 50.0


class Hub:
    """Follows one store while anyone watches."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.position = 0
        """Everything up to this revision has been handed out."""
        self._watchers: dict[tuple[str, str | None], set[Watcher]] = {}
        self._ready: list[Watcher] = []
        self._count = 0
        self._rung = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._unsubscribe: Callable[[], None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def count(self) -> int:
        """Open watches."""
        return self._count

    def join(self, watcher: Watcher, seen: int) -> bool:
        """Adds a watcher that has seen everything up to `seen`; False if the log moved on: it reads that first."""
        if self._count == 0:
            self._start()
            self.position = self.store.revision()
        if seen < self.position:
            if self._count == 0:
                self._stop()
            return False
        watcher.seen = seen
        watcher.join(self._ready)
        self._watchers.setdefault((watcher.interest.resource, watcher.interest.cluster), set()).add(watcher)
        self._count += 1
        return True

    def leave(self, watcher: Watcher) -> None:
        """Removes a watcher; one that never joined is no error."""
        key = (watcher.interest.resource, watcher.interest.cluster)
        group = self._watchers.get(key)
        if group is None or watcher not in group:
            return
        group.remove(watcher)
        self._count -= 1
        if not group:
            del self._watchers[key]
        if self._count == 0:
            self._stop()

    def close(self) -> None:
        """Ends every watch, for a store that goes away."""
        for watcher in [w for group in self._watchers.values() for w in group]:
            watcher.close()
            self.leave(watcher)

    def _start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._rung = False
        self._unsubscribe = self.store.subscribe(self._ring)
        self._timer = self._loop.call_later(BOOKMARK_SECONDS, self._bookmark)

    def _stop(self) -> None:
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ring(self) -> None:
        """The store's bell, from any thread. Many rings before the loop looks are one."""
        if self._rung or self._loop is None:
            return
        self._rung = True
        try:
            self._loop.call_soon_threadsafe(self._advance)
        except RuntimeError:  # the loop is closed: the process ends
            self._rung = False

    def _advance(self) -> None:
        """Hands out the next part of the log, then lets the loop write it out before the one after."""
        self._rung = False
        if self._count == 0:
            return
        try:
            changes = self.store.changes(self.position, CHUNK)
        except Compacted:
            log.warning("the log was compacted past revision %d: every watch starts anew", self.position)
            self.close()
            return
        for change in changes:
            self._dispatch(change)
        self._deliver()
        if changes:
            self.position = changes[-1].revision
        if len(changes) >= CHUNK:
            self._ring()

    def _dispatch(self, change: Change) -> None:
        resource, cluster = change.key.resource, change.key.cluster
        here, everywhere = self._watchers.get((resource, cluster)), self._watchers.get((resource, None))
        if here is None and everywhere is None:
            return
        event = Event(change)
        for group in (here, everywhere):
            for watcher in group or ():
                try:
                    watcher.offer(event)
                except Exception as error:  # one watch must not stop the others
                    log.error("a watch of %s failed\n%s", resource, described(error))
                    watcher.close()

    def _deliver(self) -> None:
        """One write for each watcher that got something."""
        for watcher in self._ready:
            watcher.deliver()
        self._ready.clear()

    def _bookmark(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(BOOKMARK_SECONDS, self._bookmark)
        for group in self._watchers.values():
            for watcher in group:
                if watcher.bookmarks:
                    watcher.bookmark(self.position)
        self._deliver()
