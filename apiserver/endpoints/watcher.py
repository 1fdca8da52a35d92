"""One open watch: what it is interested in, what a change is to it, and what it has yet to send.

Made by watch.py, fed by the hub (hub.py) or, while it catches up, by watch.py itself. Everything here runs in the event
loop's thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import orjson

from apiserver.endpoints.forms import AnswerForm
from apiserver.endpoints.selection import Selection
from apiserver.model.errors import expired
from apiserver.storage.protocol import Change

Object = dict[str, Any]

BACKLOG = 16 * 1024 * 1024
"""Bytes that a watcher may lag behind before it is dropped."""

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"


class Interest(NamedTuple):
    """What a watcher watches: a resource of one cluster or of all (None), of one namespace or of all (None)."""

    resource: str
    cluster: str | None
    namespace: str | None


class WatchEvent:
    """A change on its way to watchers, with what they share: decoded objects and encoded forms."""

    __slots__ = ("_encoded", "_objects", "change")

    def __init__(self, change: Change) -> None:
        self.change = change
        self._objects: dict[tuple[bool, tuple[Hashable, ...]], Object] = {}
        self._encoded: dict[tuple[Any, ...], bytes] = {}

    def object(self, new: bool, form: AnswerForm) -> Object:
        """The new or previous state in the form's version, decoded once."""
        key = (new, form.view.key)
        found = self._objects.get(key)
        if found is None:
            value = self.change.value if new else self.change.previous
            found = self._objects[key] = form.view.converted(self.change.key, value or b"{}")
        return found

    def encoded(self, kind: str, form: AnswerForm, first: bool) -> bytes:
        """One line of a watch."""
        key = (kind, first and form.has_head, *form.key)
        found = self._encoded.get(key)
        if found is None:
            change = self.change
            value = (change.previous if kind == DELETED else change.value) or b"{}"
            found = self._encoded[key] = form.event(kind, change.key, value, change.revision, first)
        return found


def transition(event: WatchEvent, selection: Selection, form: AnswerForm) -> str | None:
    """What the change is to someone who sees only what `selection` matches; None: nothing.

    An object that stops matching is DELETED there, in its last matching state.
    """
    change = event.change
    was, now = (v is not None and form.view.shows(change.key, v) for v in (change.previous, change.value))
    if selection:
        if not selection.key_matches(change.key):
            return None
        if selection.needs_object:
            was = was and _matches(event, False, selection, form)
            now = now and _matches(event, True, selection, form)
    if now:
        return MODIFIED if was else ADDED
    return DELETED if was else None


def _matches(event: WatchEvent, new: bool, selection: Selection, form: AnswerForm) -> bool:
    value = (event.change.value if new else event.change.previous) or b""
    return selection.may_match(value) and selection.object_matches(event.object(new, form))


def _always() -> bool:
    return True


class OpenWatch:
    """One open watch. Made by watch.py; fed by the hub or, while it catches up, by watch.py itself."""

    __slots__ = (
        "_bytes",
        "_lines",
        "_ready",
        "_waiter",
        "bookmarks",
        "closed",
        "first",
        "follow",
        "form",
        "interest",
        "joined",
        "on_drop",
        "same",
        "seen",
        "selection",
        "stands",
        "write",
    )

    def __init__(
        self, interest: Interest, selection: Selection, form: AnswerForm, bookmarks: bool, same: tuple[Any, ...] = ()
    ) -> None:
        """`same`: what tells `selection` from others of the interest; () if nothing else is selected."""
        self.interest = interest
        self.same = (interest.namespace, *same, *form.key)
        """Watchers of one resource and cluster that agree in this are sent the same bytes."""
        self.selection = selection
        self.form = form
        self.bookmarks = bookmarks
        self.closed = False
        self.first = True
        self.joined = False
        self.seen = 0
        self.on_drop: Callable[[], object] | None = None
        """Called when the watcher is dropped, since its connection may never take another byte."""
        self.stands: Callable[[], bool] = _always
        """Whether its workspace is there and defines the kind as it did when the watch began."""
        self.follow: Callable[[Change], bool] | None = None
        """Told of each change of what decides who is seen, where that is not everybody; False ends the watch."""
        self.write: Callable[[bytes], bool] | None = None
        """Sends bytes at once if it can (exchange.py, `writer`). Used while nothing else is under way."""
        self._lines: list[bytes] = []
        self._bytes = 0
        self._ready: list[OpenWatch] | None = None
        """The hub's list of those that have something to deliver."""
        self._waiter: asyncio.Future[None] | None = None

    def offer(self, event: WatchEvent) -> None:
        """While it catches up: takes the event if it concerns this watch and is news to it."""
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
        elif self._ready is not None and self.write is not None:
            if len(self._lines) == 1:
                self._ready.append(self)
        else:
            self.wake()

    def send(self, data: bytes) -> None:
        """`put`, at once where nothing is under way."""
        if self.write is not None and not self._lines and self._waiter is not None and not self._waiter.done():
            self.first = False
            if self.write(data):
                return
        self.put(data)

    def join(self, ready: list[OpenWatch]) -> None:
        """From now on the hub feeds it. `ready`: where it puts itself to have `deliver` called."""
        self.joined = True
        self._ready = ready

    def deliver(self) -> None:
        """Writes what is buffered in one go, past the task that serves the watch, if that waits for something to send
        (else bytes would overtake others); the task does it where the connection is busy."""
        if self.write is not None and self._waiter is not None and not self._waiter.done() and self._lines:
            data = b"".join(self._lines)
            if self.write(data):
                self._lines.clear()
                self._bytes = 0
                return
        self.wake()

    def wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def bookmark(self, revision: int, *, initial_end: bool = False) -> None:
        """Says that everything up to `revision` was sent."""
        self.put(self.form.bookmark(max(revision, self.seen), initial_end))

    def notice(self, change: Change) -> bool:
        """What is seen may be something else from this change on; False where whoever watches has to begin anew: they
        are told so, and the watch ends."""
        if self.closed or self.follow is None or self.follow(change):
            return True
        error = expired("what is seen here has changed").as_status()
        self._lines = [orjson.dumps({"type": "ERROR", "object": error}) + b"\n"]
        self.close()
        return False

    def close(self) -> None:
        """Ends the watch; what is buffered is still taken."""
        self.closed = True
        self.wake()

    async def pause(self) -> None:
        """Until it is closed or `wake` is called."""
        if not self.closed:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
            self._waiter = None

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


class Cohort:
    """Joined watchers that are sent the same bytes: what a change is to them is decided and written out once."""

    __slots__ = ("_news", "members")

    def __init__(self) -> None:
        self.members: set[OpenWatch] = set()
        self._news: list[tuple[WatchEvent, str]] = []

    def offer(self, event: WatchEvent) -> bool:
        """Keeps the event for `deliver` if it concerns them; True if it is the first one kept."""
        some = next(iter(self.members))
        namespace = some.interest.namespace
        if namespace is not None and event.change.key.namespace != namespace:
            return False
        kind = transition(event, some.selection, some.form)
        if kind is None:
            return False
        self._news.append((event, kind))
        return len(self._news) == 1

    def deliver(self) -> None:
        """Hands what was kept to each: as one piece, but to whoever has seen part of it, or nothing of a table yet."""
        news, self._news = self._news, []
        if not self.members:
            return
        form, begin = next(iter(self.members)).form, news[0][0].change.revision
        piece = b"".join([event.encoded(kind, form, False) for event, kind in news])
        for watcher in list(self.members):
            if watcher.closed:
                continue
            if watcher.seen < begin and not (form.has_head and watcher.first):
                watcher.send(piece)
                continue
            for event, kind in news:
                if event.change.revision > watcher.seen and not watcher.closed:
                    watcher.put(event.encoded(kind, form, watcher.first))

    def stands(self) -> bool:
        """Whether their kind is still defined as it was: a change of it ends all of them."""
        return next(iter(self.members)).stands()

    def close(self) -> None:
        for watcher in self.members:
            watcher.close()
