"""The watch hub: follows a store's log once per process and hands each change to the watchers it concerns.

One per store. Watchers are indexed by (resource, cluster), so a change costs what its own watchers cost; those that ask
for the same are a cohort, for which an event is judged and encoded once. What one turn of the event loop brings a
watcher goes out in one write. A watcher buffers while its connection is busy and is dropped when it lags too far: it
comes back with the last revision it saw and loses nothing. Everything here runs in the event loop's thread, except the
store's bell.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from apiserver.endpoints import heldrights
from apiserver.endpoints.watcher import Cohort, OpenWatch, WatchEvent
from apiserver.model.failures import described
from apiserver.model.keys import Internal
from apiserver.model.storagenames import LOGICAL_CLUSTERS, SCHEMAS
from apiserver.registry import sharing
from apiserver.registry.catalog import MARKED
from apiserver.registry.indexes import turns_inactive
from apiserver.storage.protocol import Change, Compacted, Store

log = logging.getLogger(__name__)

CHUNK = 250
"""Log entries dispatched in one go of the event loop."""
BOOKMARK_SECONDS = 50.0
_DECIDING = MARKED | {LOGICAL_CLUSTERS}
"""Resources whose changes may end watches of their workspace: those that do not stand any more. A LogicalCluster says
that its workspace is inactive, and which programs are let in."""
_NOTICED = sharing.DECIDING | heldrights.DECIDING
"""Resources whose changes may end watches of those who do not see everything."""


class Hub:
    """Follows one store while anyone watches."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.position = 0
        """Everything up to this revision has been handed out."""
        self._cohorts: dict[tuple[str, str | None], dict[tuple[Any, ...], Cohort]] = {}
        self._news: list[Cohort] = []
        self._ready: list[OpenWatch] = []
        self._alone: set[OpenWatch] = set()
        """Watchers that read the log themselves (following.py)."""
        self._partial: set[OpenWatch] = set()
        """Joined watchers that do not see everything."""
        self._count = 0
        self._rung = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._unsubscribe: Callable[[], None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def count(self) -> int:
        """Open watches."""
        return self._count + len(self._alone)

    def join(self, watcher: OpenWatch, seen: int) -> bool:
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
        cohorts = self._cohorts.setdefault((watcher.interest.resource, watcher.interest.cluster), {})
        cohorts.setdefault(watcher.same, Cohort()).members.add(watcher)
        if watcher.follow is not None:
            self._partial.add(watcher)
        self._count += 1
        return True

    def join_alone(self, watcher: OpenWatch) -> None:
        """Adds a watcher that reads the log itself: it is only told when the store goes away."""
        self._alone.add(watcher)

    def leave(self, watcher: OpenWatch) -> None:
        """Removes a watcher; one that never joined is no error."""
        self._alone.discard(watcher)
        key = (watcher.interest.resource, watcher.interest.cluster)
        cohorts = self._cohorts.get(key, {})
        cohort = cohorts.get(watcher.same)
        if cohort is None or watcher not in cohort.members:
            return
        cohort.members.remove(watcher)
        self._partial.discard(watcher)
        self._count -= 1
        if not cohort.members:
            del cohorts[watcher.same]
            if not cohorts:
                del self._cohorts[key]
        if self._count == 0:
            self._stop()

    def close(self) -> None:
        """Ends every watch, for a store that goes away."""
        for watcher in (*self._all(), *self._alone):
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
        self._end(changes)
        if changes:
            self.position = changes[-1].revision
        if len(changes) >= CHUNK:
            self._ring()

    def _end(self, changes: list[Change]) -> None:
        """Ends the watches, after all their events, of workspaces that are gone or marked inactive, of kinds whose
        definition changed, and of programs that are done with a workspace.

        As in kube-apiserver any change of a definition's spec ends them: objects look otherwise from now on. Clients
        come again, with what they saw last. Watches across workspaces stay, since others may define the kind still, but
        for a workspace that turns inactive: as in kcp these end, too.
        """
        if any(map(turns_inactive, changes)):
            self._end_across()
        gone = {c.key.cluster for c in changes if c.key.resource == Internal.WORKSPACE and c.value is None}
        defined = {c.key.cluster for c in changes if c.key.resource in _DECIDING}
        everywhere = any(c.key.resource == SCHEMAS for c in changes)  # whoever binds it is served with it
        if not gone and not defined:
            return
        for (_, cluster), cohorts in self._cohorts.items():
            if cluster is None:
                continue
            for cohort in cohorts.values():
                if cluster in gone or ((everywhere or cluster in defined) and not cohort.stands()):
                    cohort.close()

    def _end_across(self) -> None:
        """Ends the watches over all workspaces, views' included, but for those of what says that one is inactive."""
        watchers = [w for w in (*self._all(), *self._alone) if w.interest.cluster is None]
        for watcher in watchers:
            if watcher.interest.resource != LOGICAL_CLUSTERS:
                watcher.close()

    def _dispatch(self, change: Change) -> None:
        resource, cluster = change.key.resource, change.key.cluster
        if self._partial and resource in _NOTICED:
            for watcher in list(self._partial):
                self._notice(watcher, change)
        here, everywhere = self._cohorts.get((resource, cluster)), self._cohorts.get((resource, None))
        if here is None and everywhere is None:
            return
        event = WatchEvent(change)
        for cohorts in (here, everywhere):
            for cohort in (cohorts or {}).values():
                try:
                    if cohort.offer(event):
                        self._news.append(cohort)
                except Exception as error:  # one watch must not stop the others
                    log.error("watches of %s failed\n%s", resource, described(error))
                    cohort.close()

    @staticmethod
    def _notice(watcher: OpenWatch, change: Change) -> None:
        try:
            watcher.notice(change)
        except Exception as error:  # one watch must not stop the others
            log.error("a watch failed\n%s", described(error))
            watcher.close()

    def _deliver(self) -> None:
        """One write for each watcher that got something."""
        for cohort in self._news:
            try:
                cohort.deliver()
            except Exception as error:
                log.error("watches failed\n%s", described(error))
                cohort.close()
        self._news.clear()
        for watcher in self._ready:
            watcher.deliver()
        self._ready.clear()

    def _all(self) -> list[OpenWatch]:
        return [w for cohorts in self._cohorts.values() for cohort in cohorts.values() for w in cohort.members]

    def _bookmark(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(BOOKMARK_SECONDS, self._bookmark)
        for watcher in self._all():
            if watcher.bookmarks:
                watcher.bookmark(self.position)
        self._deliver()
