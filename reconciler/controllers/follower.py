"""One loop over a store's log, for controllers that look after everything a store holds.

Used for the main store and by the stand-in of each embedded sync target. A `Part` is one controller; all parts of a
follower share one reader of the log, one queue and one thread, so that nothing is kept for a workspace in which nothing
happens. At the start, and where the log no longer reaches back, every object is shown once (`found`); from then on
parts hear of changes. Before each item the log is read to its end: a part never decides on less than what was written,
its own writes included.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from apiserver.model.keys import Key
from apiserver.storage.protocol import Change, Compacted, Conflict, Record, Store
from reconciler.controllers.runtime import Loop, WorkQueue, log_failure

_PAGE = 1000
_PATIENCE = 30.0
"""Seconds for which housekeeping gives way to a commit that is being loaded."""
_TOGETHER = 256
"""Writes that are waited for at once."""
_BELL = (-1, Key("~bell", "", "", ""))

Item = tuple[int, Key]


class Desk:
    """Where a part puts the keys that it wants to handle."""

    def __init__(self, queue: WorkQueue[Item], number: int) -> None:
        self._queue, self._number = queue, number

    def add(self, key: Key) -> None:
        self._queue.add((self._number, key))

    def later(self, key: Key, seconds: float) -> None:
        self._queue.add_after((self._number, key), seconds)


class Part:
    """A controller. All methods are called in the follower's thread; what `handle` raises is tried again later."""

    desk: Desk

    def begin(self) -> None:
        """Everything is shown anew: forget what was noted."""

    def found(self, record: Record) -> None:
        """One of the objects there are."""

    def changed(self, change: Change) -> None:
        """One entry of the log. The same change may be told twice."""

    def handle(self, key: Key) -> Future[list[int]] | None:
        """Look at the key as it is now. Raises the store's Conflict where another writer came first.

        A write that nothing waits for may be returned: many of them are then synced together. The key is handled again
        if it fails.
        """


class Follower:
    """`stop` lets the item at work finish; the store stays open."""

    def __init__(self, name: str, store: Store, parts: Sequence[Part]) -> None:
        self._store = store
        self._parts = parts
        self._queue: WorkQueue[Item] = WorkQueue(longest=10.0)
        self._loop = Loop(name, self._queue, self._step)
        self._reached: int | None = None
        self._written: list[tuple[Item, Future[list[int]]]] = []
        self._ending = threading.Event()
        self.busy: Callable[[], bool] = lambda: False
        """Whether something more urgent is at work; the log is then read a little later, all at once."""
        self._leave: Callable[[], None] = lambda: None
        for number, part in enumerate(parts):
            part.desk = Desk(self._queue, number)

    def start(self) -> None:
        self._leave = self._store.subscribe(lambda: self._queue.add(_BELL))
        self._queue.add(_BELL)
        self._loop.start()

    def stop(self) -> None:
        self._ending.set()
        self._leave()
        self._loop.stop()

    @property
    def idle(self) -> bool:
        """Whether everything written so far was heard of and nothing waits to be handled (appointments not counted)."""
        before = self._store.revision()
        return len(self._queue) == 0 and self._reached == before == self._store.revision()

    def _step(self, item: Item) -> None:
        self._catch_up()
        number, key = item
        if number >= 0 and not self._ending.is_set():
            written = self._parts[number].handle(key)
            if written is not None:
                self._written.append((item, written))
        if len(self._written) >= _TOGETHER or len(self._queue) <= 1:  # this item is the last
            self._await_writes()

    def _await_writes(self) -> None:
        written, self._written = self._written, []
        for item, future in written:
            try:
                future.result()
            except Conflict:
                self._queue.retry(item)
            except Exception as error:
                log_failure("write", item[1], error)
                self._queue.retry(item)

    def _catch_up(self) -> None:
        until = time.monotonic() + _PATIENCE
        while self.busy() and time.monotonic() < until and not self._ending.wait(0.05):
            pass
        if self._reached is None:
            self._load()
        while self._reached is not None and not self._ending.is_set():
            try:
                changes = self._store.changes(self._reached, _PAGE)
            except Compacted:
                self._load()
                continue
            if not changes:
                return
            for change in changes:
                if not change.key.resource.startswith("~"):
                    self._tell(change)
            self._reached = changes[-1].revision

    def _tell(self, news: Change | Record) -> None:
        """One object that a part cannot read must not keep it, or the others, from the rest."""
        for part in self._parts:
            try:
                if isinstance(news, Change):
                    part.changed(news)
                else:
                    part.found(news)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                log_failure(type(part).__name__, news.key, error)

    def _load(self) -> None:
        reached = self._store.revision()
        for part in self._parts:
            part.begin()
        for resource in self._store.resources():
            if not resource.startswith("~"):
                self._show(resource)
        if not self._ending.is_set():
            self._reached = reached

    def _show(self, resource: str) -> None:
        after: Key | None = None
        while not self._ending.is_set():
            page = self._store.scan(resource, after=after, limit=_PAGE)
            for record in page.records:
                self._tell(record)
            if page.more is None:
                return
            after = page.more
