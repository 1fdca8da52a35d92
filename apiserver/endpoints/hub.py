"""The watch hub: follows a store's log once per process and hands each change to the watchers it concerns.

One per store. Watchers are indexed by (resource, cluster), so a change costs what its own watchers cost; an event is
encoded once per form and shared. A watcher buffers while its connection is busy and is dropped when it lags too far:
it comes back with the last revision it saw and loses nothing. Everything here runs in the event loop's thread, except
the store's bell.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, NamedTuple

import orjson

from apiserver.endpoints.forms import Form
from apiserver.endpoints.selection import Selection
from apiserver.registry.conversion import convert
from apiserver.storage.protocol import Change, Compacted, Store

log = logging.getLogger(__name__)

Object = dict[str, Any]

CHUNK = 1000
"""Log entries dispatched in one go of the event loop."""
BACKLOG = 16 * 1024 * 1024
"""Bytes that a watcher may lag behind before it is dropped."""
BOOKMARK_SECONDS = 50.0

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"


class Interest(NamedTuple):
    """What a watcher watches: a resource of one cluster or of all (None), of one namespace or of all (None)."""

    resource: str
    cluster: str | None
    namespace: str | None


class Event:
    """A change on its way to watchers, with what they share: decoded objects and encoded forms."""

    __slots__ = ("_encoded", "_objects", "change")

    def __init__(self, change: Change) -> None:
        self.change = change
        self._objects: dict[tuple[bool, str], Object] = {}
        self._encoded: dict[tuple[Any, ...], bytes] = {}

    def object(self, new: bool, form: Form) -> Object:
        """The new or previous state in the form's version, decoded once."""
        key = (new, form.view.kind.api_version)
        found = self._objects.get(key)
        if found is None:
            value = self.change.value if new else self.change.previous
            found = self._objects[key] = convert(orjson.loads(value or b"{}"), form.view.kind)
        return found

    def encoded(self, kind: str, form: Form, first: bool) -> bytes:
        """One line of a watch."""
        key = (kind, first and form.has_head, *form.key)
        found = self._encoded.get(key)
        if found is None:
            change = self.change
            value = (change.previous if kind == DELETED else change.value) or b"{}"
            found = self._encoded[key] = form.event(kind, change.key, value, change.revision, first)
        return found


def transition(event: Event, selection: Selection, form: Form) -> str | None:
    """What the change is to someone who sees only what `selection` matches; None: nothing.

    An object that stops matching is DELETED there, in its last matching state.
    """
    change = event.change
    was, now = change.previous is not None, change.value is not None
    if selection:
        if not selection.key_matches(change.key):
            return None
        if selection.needs_object:
            was = was and _matches(event, False, selection, form)
            now = now and _matches(event, True, selection, form)
    if now:
        return MODIFIED if was else ADDED
    return DELETED if was else None


def _matches(event: Event, new: bool, selection: Selection, form: Form) -> bool:
    value = (event.change.value if new else event.change.previous) or b""
    return selection.may_match(value) and selection.object_matches(event.object(new, form))


class Watcher:
    """One open watch. Made by watch.py; fed by the hub or, while it catches up, by watch.py itself."""

    __slots__ = (
        "_bytes",
        "_lines",
        "_waiter",
        "bookmarks",
        "closed",
        "first",
        "form",
        "interest",
        "joined",
        "on_drop",
        "seen",
        "selection",
    )

    def __init__(self, interest: Interest, selection: Selection, form: Form, bookmarks: bool) -> None:
        self.interest = interest
        self.selection = selection
        self.form = form
        self.bookmarks = bookmarks
        self.closed = False
        self.first = True
        self.joined = False
        self.seen = 0
        self.on_drop: Callable[[], object] | None = None
        """Called when the watcher is dropped, since its connection may never take another byte."""
        self._lines: list[bytes] = []
        self._bytes = 0
        self._waiter: asyncio.Future[None] | None = None

    def offer(self, event: Event) -> None:
        """Takes the event if it concerns this watch and is news to it."""
        if self.closed or event.change.revision <= self.seen:
            return
        namespace = self.interest.namespace
        if namespace is not None and event.change.key.namespace != namespace:
            return
        kind = transition(event, self.selection, self.form)
        if kind is not None:
            self.put(event.encoded(kind, self.form, self.first))

    def put(self, line: bytes) -> None:
        self.first = False
        self._lines.append(line)
        self._bytes += len(line)
        if self._bytes > BACKLOG:
            self._lines.clear()
            self.close()
            if self.on_drop is not None:
                self.on_drop()
        elif self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def bookmark(self, revision: int, *, initial_end: bool = False) -> None:
        """Says that everything up to `revision` was sent."""
        self.put(self.form.bookmark(max(revision, self.seen), initial_end))

    def close(self) -> None:
        """Ends the watch; what is buffered is still taken."""
        self.closed = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def take(self) -> bytes:
        """Everything buffered, waiting for something; b"" once closed and empty."""
        if not self._lines and not self.closed:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
            self._waiter = None
        return self.flush()

    def flush(self) -> bytes:
        """Everything buffered, without waiting."""
        data = b"".join(self._lines)
        self._lines.clear()
        self._bytes = 0
        return data


class Hub:
    """Follows one store while anyone watches."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.position = 0
        """Everything up to this revision has been handed out."""
        self._watchers: dict[tuple[str, str | None], set[Watcher]] = {}
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
        watcher.seen, watcher.joined = seen, True
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
                except Exception:  # one watch must not stop the others
                    log.exception("a watch of %s failed", resource)
                    watcher.close()

    def _bookmark(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(BOOKMARK_SECONDS, self._bookmark)
        for group in self._watchers.values():
            for watcher in group:
                if watcher.bookmarks:
                    watcher.bookmark(self.position)
