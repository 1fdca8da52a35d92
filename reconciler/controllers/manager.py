"""Runs controllers: those of one manager share a queue and its threads, and nothing is kept for a workspace in which
nothing happens.

Made by whoever wires controllers (commands/, syncing/service, standin/loop). What a controller makes of the feed's
entries comes into the queue; each key is reconciled by one thread at a time, and tried again, ever later, while that
fails. What survives the process is the agenda's (agenda.py).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from apiserver.metrics import queues
from apiserver.storage.baton import BATON
from apiserver.storage.protocol import Conflict
from reconciler.controllers.agenda import SOON, Agenda, Item, KeyAtWork
from reconciler.controllers.appointments import Appointments
from reconciler.controllers.controller import Controller
from reconciler.controllers.failures import log_failure
from reconciler.controllers.feed import Feed, Follower
from reconciler.controllers.workqueue import WorkQueue

_TOGETHER = 256
"""Writes that are waited for at once."""
_NAP = 0.05

_LOAD: Item = (-1, "")


@dataclass(frozen=True, slots=True)
class ManagerSettings:
    """`threads`: that reconcile at a time. `current`: before each key the log is read to its end, so that no controller
    decides on less than what was written, its own writes included. `longest`: seconds between two tries, at most.
    `patience`: seconds for which what is more urgent goes first. `counted`: what its queue is called in metrics, where
    its own name is somebody's to choose. `local`: its controllers wait for nothing but the store, and so work with the
    baton (storage/baton).
    """

    threads: int = 1
    current: bool = False
    longest: float = 60.0
    patience: float = 30.0
    counted: str = ""
    local: bool = False


LOCAL = ManagerSettings(local=True)
CAREFUL = ManagerSettings(current=True, longest=10.0, local=True)
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
        self._name = settings.counted or name
        self._queue: WorkQueue[Item] = WorkQueue(settings.longest, self._name)
        self._ending = threading.Event()
        self._agendas = [Agenda(self._queue, n, self._appointments(c)) for n, c in enumerate(controllers)]
        self._followers: list[Follower] = []
        for controller, agenda in zip(controllers, self._agendas, strict=True):
            controller.queue = agenda
            if feed is not None:
                self._followers.append(feed.add(controller, agenda.take, busy, agenda.progress))
        self._stepped: _Written = []
        self._threads = [
            threading.Thread(target=self._run, name=f"{name}-{number}", daemon=True)
            for number in range(settings.threads)
        ]

    def _appointments(self, controller: Controller[Any]) -> Appointments | None:
        if self._feed is None or controller.version is None:
            return None
        return Appointments(self._feed.store, controller.name)

    def start(self) -> None:
        self._queue.add(_LOAD)
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
        self._load()
        while self.step():
            pass

    def step(self) -> bool:
        """As `settle`, one key at most; whether there was one."""
        try:
            return self._step()
        finally:
            BATON.give()

    def _step(self) -> bool:
        self._catch_up()
        item = self._queue.get(0)
        if item is not None:
            self._handle(item, self._stepped, again=self._queue.add)
            if not len(self._queue):
                self._await(self._stepped, len(self._stepped), again=self._queue.add)
        return item is not None

    def _run(self) -> None:
        written: _Written = []
        while (item := self._next(written)) is not None:
            self._handle(item, written, again=self._queue.retry)

    def _next(self, written: _Written) -> Item | None:
        """What to do next; None at the end. Before a thread sleeps it waits for what it wrote, and what controllers
        gathered goes to the store, whatever was done last."""
        item = self._queue.get(0)
        if item is None:
            self._await(written, len(written), again=self._queue.retry)
            item = self._queue.get()
        return item

    def _handle(self, item: Item, written: _Written, again: Callable[[Item], None]) -> None:
        number, key = item
        if number < 0:
            self._load()
            self._queue.done(item)
            return
        agenda = self._agendas[number]
        work, began = agenda.taken(key), time.perf_counter()
        try:
            if not self._catch_up():
                return
            if self._settings.local:
                BATON.take()
            writes = agenda.during(work, self._controllers[number].reconcile)
            if writes:
                written.append((item, work, writes))
            else:
                self._done(item, work)
        except Exception as error:
            self._failed(item, work, error, again)
        finally:
            self._queue.done(item)
            queues.WORK.took(time.perf_counter() - began, self._name)
        if len(written) >= 2 * _TOGETHER:
            self._await(written, _TOGETHER, again)  # the store is at work on the others meanwhile

    def _done(self, item: Item, work: KeyAtWork) -> None:
        self._queue.forget(item)
        self._agendas[item[0]].done(work)

    def _failed(self, item: Item, work: KeyAtWork, error: Exception, again: Callable[[Item], None]) -> None:
        number, key = item
        failures = self._queue.failures(item)
        self._agendas[number].failed(work, failures)
        if isinstance(error, Conflict):
            again(item)
            return
        if failures in (0, 3, 6) or failures % 20 == 0:
            log_failure(self._controllers[number].name, key, error)
        self._queue.retry(item)

    def _await(self, written: _Written, number: int, again: Callable[[Item], None]) -> None:
        """The first so many."""
        BATON.give()
        if not number:
            return
        for controller in self._controllers:
            controller.hand_over()
        for item, work, writes in written[:number]:
            try:
                for each in writes:
                    each.result()
                self._done(item, work)
            except Exception as error:
                self._failed(item, work, error, again)
        del written[:number]

    def _load(self) -> None:
        """Show the controllers what they have to see, and take up their appointments."""
        try:
            self._catch_up()
            for agenda in self._agendas:
                agenda.load()
        except Exception as error:
            log_failure("manager", "start", error)
        if any(agenda.progress is not None for agenda in self._agendas):
            self._queue.add_after(_LOAD, SOON / 2)

    def _catch_up(self) -> bool:
        """Whether the controllers know enough to go on; False at the end."""
        if self._feed is None:
            return not self._ending.is_set()
        if self._settings.current or not all(f.ready.is_set() for f in self._followers):
            until = time.monotonic() + self._settings.patience
            while self._busy() and time.monotonic() < until:
                BATON.give()
                if self._ending.wait(_NAP):
                    break
            return self._feed.catch_up(self._followers) and not self._ending.is_set()
        return not self._ending.is_set()


_Written = list[tuple[Item, KeyAtWork, list[Future[list[int]]]]]
