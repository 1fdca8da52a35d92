"""A watch of objects that a webhook converts: it reads the log itself, and converts in the webhook's lane.

Other watches are handed what happens by the hub, in the event loop, where nothing may wait. Called by watch.py. If the
webhook fails the watch ends with an ERROR event that says so: the client lists again, and learns it there too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import orjson

from apiserver.endpoints.asking import Asking
from apiserver.endpoints.hub import BOOKMARK_SECONDS, CHUNK
from apiserver.endpoints.listing import matches
from apiserver.endpoints.options import WatchOptions
from apiserver.endpoints.watcher import ADDED, OpenWatch, WatchEvent
from apiserver.model.errors import StatusError, expired
from apiserver.model.keys import Key
from apiserver.storage.protocol import Change, Compacted, Page

_PAGE = 200


class Following:
    """One such watch."""

    def __init__(self, asking: Asking, watcher: OpenWatch) -> None:
        self._asking, self._watcher = asking, watcher
        self._exchange = asking.exchange
        self._store = asking.world.realm.store
        self._news = True
        self._bookmarked = time.monotonic()

    async def serve(self, options: WatchOptions) -> None:
        """Until the watcher is closed."""
        watcher = self._watcher
        self._asking.world.realm.hub.join_alone(watcher)
        loop = asyncio.get_running_loop()
        leave = self._store.subscribe(lambda: _safely(loop, self._ring))
        try:
            seen = watcher.seen or await self._initial(options)
            while not watcher.closed:
                seen = await self._step(seen)
            if watcher.bookmarks:
                watcher.bookmark(seen)
            await self._exchange.chunk(watcher.flush(), more=False)
        except Compacted as error:
            await self._end(expired(str(error)))
        except StatusError as error:
            await self._end(error)
        finally:
            leave()

    def _ring(self) -> None:
        self._news = True
        self._watcher.wake()

    async def _initial(self, options: WatchOptions) -> int:
        after: Key | None = None
        at: int | None = None
        while True:
            page = self._store.scan(*self._watcher.interest, after=after, limit=_PAGE, at=at)
            await self._asking.convert(lambda page=page: self._show(page))  # type: ignore[misc]
            await self._send()
            if page.more is None:
                if options.initial:
                    self._watcher.bookmark(page.revision, initial_end=True)
                    await self._send()
                return page.revision
            after, at = page.more, page.revision

    def _show(self, page: Page) -> None:
        watcher = self._watcher
        watcher.form.view.prepare(record.value for record in page.records)
        for record in page.records:
            if matches(watcher.selection, watcher.form.view, record):
                line = watcher.form.event(ADDED, record.key, record.value, record.revision, watcher.first)
                watcher.put(line)

    async def _step(self, seen: int) -> int:
        """Sends what came after `seen`, waiting for it; returns how far that reaches."""
        self._news = False
        changes = self._store.changes(seen, CHUNK)
        if not all(self._watcher.notice(change) for change in changes):
            return seen
        resource, cluster, namespace = self._watcher.interest
        ours = [c for c in changes if c.key.resource == resource and cluster in (None, c.key.cluster)
                and namespace in (None, c.key.namespace)]  # fmt: skip
        if ours:
            await self._asking.convert(lambda: self._offer(ours))
            await self._send()
        if changes:
            self._watcher.seen = changes[-1].revision
            if not self._watcher.stands():
                self._watcher.close()
            return self._watcher.seen
        if self._watcher.bookmarks and time.monotonic() > self._bookmarked + BOOKMARK_SECONDS:
            self._bookmarked = time.monotonic()
            self._watcher.bookmark(seen)
            await self._send()
        if not self._news:
            with _alarm(BOOKMARK_SECONDS, self._watcher.wake):
                await self._watcher.pause()
        return seen

    def _offer(self, changes: list[Change]) -> None:
        watcher = self._watcher
        watcher.form.view.prepare(c.value or c.previous or b"{}" for c in changes)
        for change in changes:
            watcher.offer(WatchEvent(change))

    async def _send(self) -> None:
        data = self._watcher.flush()
        if data:
            await self._exchange.chunk(data)

    async def _end(self, error: StatusError) -> None:
        event = orjson.dumps({"type": "ERROR", "object": error.as_status()}) + b"\n"
        await self._exchange.chunk(self._watcher.flush() + event, more=False)


def _safely(loop: asyncio.AbstractEventLoop, ring: Callable[[], None]) -> None:
    """The store's bell rings in any thread, and may after the loop has ended."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(ring)


@contextmanager
def _alarm(seconds: float, ring: Callable[[], None]) -> Iterator[None]:
    timer = asyncio.get_running_loop().call_later(seconds, ring)
    try:
        yield
    finally:
        timer.cancel()
