"""What every loop of the reconciler runs on: an informer over the store's log, a work queue with back-off, a loop.

Used by controllers/, syncing/ and statusbranch/. Plain threads; one process. Knows nothing of Kubernetes' kinds. Loops
are level-triggered: a change names a key, the handler reads what is so now. Handlers are told of every change at least
once; where the log no longer reaches back (a first load writes none), gap handlers are told to look at everything.
"""

from __future__ import annotations

import heapq
import logging
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from apiserver.storage.protocol import Change, Compacted, Conflict, Store

log = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)


class Expected(Exception):
    """A failure whose text may be shown and logged: it holds nothing secret. Retried like any other."""


class Informer:
    """One thread that tails the store's log and hands each change to those who asked for its resource.

    Handlers run in that thread, so they only note down what is to do. `on` may be called while it runs.
    """

    FALLBACK_SECONDS = 1.0
    """A doorbell may be missed; the log is looked at this often in any case."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._by_resource: dict[str, tuple[Callable[[Change], None], ...]] = {}
        self._everything: tuple[Callable[[Change], None], ...] = ()
        self._gaps: tuple[Callable[[], None], ...] = ()
        self._lock = threading.Lock()
        self._bell = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._unsubscribe: Callable[[], None] = lambda: None
        self.reached = 0
        """Every change up to this revision was handed out."""

    def on(self, resources: frozenset[str] | None, handler: Callable[[Change], None]) -> None:
        """Hand `handler` the changes of these storage resources (`placements.scheduling.kcp.io`); None: of all."""
        with self._lock:
            if resources is None:
                self._everything = (*self._everything, handler)
                return
            table = dict(self._by_resource)
            for resource in resources:
                table[resource] = (*table.get(resource, ()), handler)
            self._by_resource = table

    def on_gap(self, handler: Callable[[], None]) -> None:
        """Call `handler` where changes were missed: it looks at everything that it cares for."""
        with self._lock:
            self._gaps = (*self._gaps, handler)

    def start(self, after: int) -> None:
        """Begin with the first change behind revision `after`."""
        self.reached = after
        self._unsubscribe = self._store.subscribe(self._bell.set)
        self._thread = threading.Thread(target=self._run, name="informer", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._bell.set()
        self._unsubscribe()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                more = self._step()
            except Exception as error:
                log_failure("informer", self.reached, error)
                more = False
            if not more:
                self._bell.wait(self.FALLBACK_SECONDS)
                self._bell.clear()

    def _step(self) -> bool:
        try:
            changes = self._store.changes(self.reached, 1000)
        except Compacted:
            self.reached = self._store.revision()
            for gap in self._gaps:
                self._call(lambda _, gap=gap: gap(), None)  # type: ignore[misc]
            return True
        for change in changes:
            for handler in self._everything:
                self._call(handler, change)
            for handler in self._by_resource.get(change.key.resource, ()):
                self._call(handler, change)
            self.reached = change.revision
        return bool(changes)

    def _call(self, handler: Callable[[Change], None], change: Change | None) -> None:
        try:
            handler(change)  # type: ignore[arg-type]
        except Exception as error:
            log_failure("informer handler", change.key if change else "gap", error)


class WorkQueue(Generic[K]):
    """Keys to look at, each at most once at a time and at most once waiting.

    A key added while it is being worked on is handed out again after `done`. `retry` waits 50 ms, 100 ms, … up to
    `longest` seconds; `forget` (or a success, see Loop) starts over.
    """

    def __init__(self, longest: float = 60.0) -> None:
        self._ready: deque[K] = deque()
        self._waiting: set[K] = set()
        self._working: set[K] = set()
        self._later: list[tuple[float, int, K]] = []
        self._due: dict[K, float] = {}
        self._failures: dict[K, int] = {}
        self._sequence = 0
        self._longest = longest
        self._closed = False
        self._condition = threading.Condition()

    def __len__(self) -> int:
        """Keys that wait or are being worked on; those of `add_after` not counted."""
        with self._condition:
            return len(self._waiting | self._working)

    def pending(self) -> set[K]:
        """Those that wait, are at work or come later."""
        with self._condition:
            return self._waiting | self._working | self._due.keys()

    def add(self, key: K) -> None:
        with self._condition:
            self._add(key)

    def _add(self, key: K) -> None:
        if key in self._waiting or self._closed:
            return
        self._waiting.add(key)
        if key not in self._working:
            self._ready.append(key)
            self._condition.notify()

    def add_after(self, key: K, seconds: float) -> None:
        """Add the key later; an earlier appointment stands, a later one is replaced."""
        with self._condition:
            at = time.monotonic() + seconds
            if self._closed or self._due.get(key, at + 1) <= at:
                return
            self._due[key] = at
            self._sequence += 1
            heapq.heappush(self._later, (at, self._sequence, key))
            self._condition.notify()

    def get(self, timeout: float | None = None) -> K | None:
        """The next key, or None after `timeout` seconds or when closed. Call `done` for it."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._condition:
            while not self._closed:
                now = time.monotonic()
                self._promote(now)
                if self._ready:
                    key = self._ready.popleft()
                    self._waiting.discard(key)
                    self._working.add(key)
                    return key
                if deadline is not None and now >= deadline:
                    return None
                until = [t for t in (deadline, self._later[0][0] if self._later else None) if t is not None]
                self._condition.wait(max(0.0, min(until) - now) if until else None)
            return None

    def _promote(self, now: float) -> None:
        while self._later and self._later[0][0] <= now:
            at, _, key = heapq.heappop(self._later)
            if self._due.get(key) == at:
                del self._due[key]
                self._add(key)

    def done(self, key: K) -> None:
        with self._condition:
            self._working.discard(key)
            if key in self._waiting:
                self._ready.append(key)
                self._condition.notify()

    def retry(self, key: K) -> None:
        """Hand the key out again after a wait that doubles with every failure."""
        with self._condition:
            count = self._failures.get(key, 0)
            self._failures[key] = count + 1
        self.add_after(key, min(self._longest, 0.05 * 2 ** min(count, 20)))

    def forget(self, key: K) -> None:
        with self._condition:
            self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        with self._condition:
            return self._failures.get(key, 0)

    def close(self) -> None:
        with self._condition:
            self._closed = True
            self._condition.notify_all()


class Loop(Generic[K]):
    """`handler(key)` for every key of the queue, on `threads` threads. What fails is logged and tried again later."""

    def __init__(self, name: str, queue: WorkQueue[K], handler: Callable[[K], None], threads: int = 1) -> None:
        self._name, self._queue, self._handler = name, queue, handler
        self._threads = [threading.Thread(target=self._run, name=f"{name}-{n}", daemon=True) for n in range(threads)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self, timeout: float = 3.0) -> bool:
        """Let the keys at work finish (at most `timeout` seconds); those that wait are left. Whether all did."""
        self._queue.close()
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _run(self) -> None:
        while (key := self._queue.get()) is not None:
            try:
                self._handler(key)
                self._queue.forget(key)
            except Conflict:
                self._queue.retry(key)
            except Exception as error:
                if self._queue.failures(key) in (0, 3, 6) or self._queue.failures(key) % 20 == 0:
                    log_failure(self._name, key, error)
                self._queue.retry(key)
            finally:
                self._queue.done(key)


def log_failure(what: str, key: object, error: BaseException) -> None:
    """One line: what failed and where. The text of an error that is not Expected is left out: it may quote a Secret."""
    if isinstance(error, Expected):
        log.warning("%s %s: %s", what, key, error)
        return
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}" if frames else "unknown place"
    log.warning("%s %s: %s at %s", what, key, type(error).__name__, where)
