"""Runs controllers: those of one manager share a queue and its threads, and nothing is kept for a workspace in which
nothing happens.

Made by whoever wires controllers (commands/, syncing/service, standin/loop). What a controller makes of the feed's
entries comes into the queue; each key is reconciled by one thread at a time, and tried again, ever later, while that
fails.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

from apiserver.storage.protocol import Conflict
from reconciler.controllers.controller import Controller
from reconciler.controllers.failures import log_failure
from reconciler.controllers.feed import Feed
from reconciler.controllers.workqueue import Queue, WorkQueue

_TOGETHER = 256
"""Writes that are waited for at once."""
_NAP = 0.05

Item = tuple[int, Any]
"""The controller's number in its manager, and the key."""
_BEGIN: Item = (-1, "")


@dataclass(frozen=True, slots=True)
class ManagerSettings:
    """`threads`: that reconcile at a time. `current`: before each key the log is read to its end, so that no controller
    decides on less than what was written, its own writes included. `longest`: seconds between two tries, at most.
    `patience`: seconds for which what is more urgent goes first.
    """

    threads: int = 1
    current: bool = False
    longest: float = 60.0
    patience: float = 30.0


CAREFUL = ManagerSettings(current=True, longest=10.0)
"""Of housekeeping, which takes away what nobody needs."""


class Manager:
    """`start`, and `stop`, which lets the keys at work finish. Without a feed controllers get the keys alone that are
    put into their queues."""

    def __init__(
        self,
        name: str,
        controllers: Sequence[Controller[Any]],
        feed: Feed | None = None,
        settings: ManagerSettings = ManagerSettings(),
        busy: Callable[[], bool] = lambda: False,
    ) -> None:
        """`busy`: whether something more urgent is at work; what is to be done is then done a little later."""
        self._controllers, self._feed, self._settings, self._busy = controllers, feed, settings, busy
        self._queue: WorkQueue[Item] = WorkQueue(settings.longest)
        self._ending = threading.Event()
        for number, controller in enumerate(controllers):
            controller.queue = Queue(self._queue, number)
        self._followers = [feed.add(c, partial(self._take, n), busy) for n, c in enumerate(controllers)] if feed else []
        self._threads = [
            threading.Thread(target=self._run, name=f"{name}-{number}", daemon=True)
            for number in range(settings.threads)
        ]

    def start(self) -> None:
        self._queue.add(_BEGIN)
        for thread in self._threads:
            thread.start()

    def stop(self, timeout: float = 3.0) -> bool:
        """Let the keys at work finish (at most `timeout` seconds); those that wait are left. Whether all did."""
        self._ending.set()
        self._queue.close()
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    @property
    def working(self) -> bool:
        """Whether a key waits or is being reconciled (appointments and retries not counted)."""
        return bool(len(self._queue))

    @property
    def idle(self) -> bool:
        """Whether all that was written so far was told of, and nothing is left to do but appointments and retries."""
        if self._feed is None:
            return not self.working
        before = self._feed.store.revision()
        told = all(f.ready.is_set() for f in self._followers) and self._feed.reached >= before
        return told and not self.working and before == self._feed.store.revision()

    def settle(self) -> None:
        """Does all there is to do now, in this thread, for a manager that was not started."""
        written: _Written = []
        while True:
            self._catch_up()
            item = self._queue.get(0)
            if item is None:
                return
            self._handle(item, written, again=self._queue.add)

    def _take(self, number: int, keys: Iterable[Any]) -> None:
        for key in keys:
            self._queue.add((number, key))

    def _run(self) -> None:
        written: _Written = []
        while (item := self._queue.get()) is not None:
            self._handle(item, written, again=self._queue.retry)

    def _handle(self, item: Item, written: _Written, again: Callable[[Item], None]) -> None:
        number, key = item
        try:
            if self._catch_up() and number >= 0:
                answer = self._controllers[number].reconcile(key)
                if answer is None:
                    self._queue.forget(item)
                else:
                    written.append((item, answer))
        except Conflict:
            again(item)
        except Exception as error:
            self._failed(item, error)
        finally:
            self._queue.done(item)
        if written and (len(written) >= _TOGETHER or not len(self._queue)):
            self._await(written, again)

    def _failed(self, item: Item, error: Exception) -> None:
        failures = self._queue.failures(item)
        if failures in (0, 3, 6) or failures % 20 == 0:
            number, key = item
            log_failure(self._controllers[number].name if number >= 0 else "feed", key, error)
        self._queue.retry(item)

    def _await(self, written: _Written, again: Callable[[Item], None]) -> None:
        for item, answer in written:
            try:
                answer.result()
                self._queue.forget(item)
            except Conflict:
                again(item)
            except Exception as error:
                self._failed(item, error)
        written.clear()

    def _catch_up(self) -> bool:
        """Whether the controllers know enough to go on; False at the end."""
        if self._feed is None:
            return not self._ending.is_set()
        if self._settings.current or not all(f.ready.is_set() for f in self._followers):
            until = time.monotonic() + self._settings.patience
            while self._busy() and time.monotonic() < until and not self._ending.wait(_NAP):
                pass
            return self._feed.catch_up(self._followers) and not self._ending.is_set()
        return not self._ending.is_set()


_Written = list[tuple[Item, Future[list[int]]]]
