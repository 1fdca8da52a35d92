"""What one controller has to do: its part of a manager's queue, how far it is, and its appointments.

Made by a manager for each of its controllers, which know it as their `queue`. For a controller without a version it is
memory alone. With one, whatever is to be done stands on disk before its checkpoint passes what asked for it: as an
appointment, or as a key for the next start, where its work fails again and again or can do nothing for now.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from reconciler.controllers.appointments import AT_START, Appointment, Appointments
from reconciler.controllers.progress import Progress, Task
from reconciler.controllers.workqueue import WorkQueue

Reconcile = Callable[[Any], Future[list[int]] | None]

Item = tuple[int, Any]
"""The controller's number in its manager, and the key."""

SOON = 60.0
"""Seconds: an appointment that is nearer stands in memory alone, and holds the checkpoint until it was kept."""
_OFTEN = 10
"""Failures in a row after which a key holds the checkpoint no more: it is looked at again at the next start."""


@dataclass(frozen=True, slots=True, eq=False)
class KeyAtWork:
    """A key at work. `rows`: on disk that stand for it."""

    task: Task
    rows: frozenset[str]


class Agenda:
    """`number`: the controller's in its manager. `appointments`: None for one without a version."""

    def __init__(self, queue: WorkQueue[Item], number: int, appointments: Appointments | None) -> None:
        self._queue, self._number, self._appointments = queue, number, appointments
        self.progress = Progress() if appointments is not None else None
        self._at = threading.local()
        self._rows: dict[Any, set[str]] = {}
        """On disk for a key that memory knows of."""

    # -- what controllers do

    def add(self, key: Any) -> None:
        self._told(key, getattr(self._at, "revision", None))

    def add_after(self, key: Any, seconds: float) -> None:
        if self.progress is None or self._appointments is None or seconds <= SOON:
            if self.progress is not None:
                self.progress.told(key, getattr(self._at, "revision", None))
            self._queue.add_after((self._number, key), seconds)
            return
        made, written = self._appointments.put(key, time.time() + seconds)
        self._note(written)
        if self._appointments.were_read(made.at):
            self._load(made)

    def hold(self, key: Any) -> None:
        self._note(self._held(key))

    def _held(self, key: Any) -> Future[list[int]] | None:
        if self._appointments is None:
            return None
        made, written = self._appointments.put(key, AT_START)
        self._rows.setdefault(key, set()).add(made.row)
        return written

    def _note(self, written: Future[list[int]] | None) -> None:
        """What a key's work writes down is awaited with it."""
        if written is not None:
            self._at.writes = [*getattr(self._at, "writes", ()), written]

    def pending(self) -> set[Any]:
        return {key for number, key in self._queue.pending() if number == self._number}

    # -- what the manager does

    def take(self, keys: Iterable[Any], revision: int) -> None:
        """Of an entry."""
        for key in keys:
            self._told(key, revision)

    def _told(self, key: Any, revision: int | None) -> None:
        if self.progress is not None:
            self.progress.told(key, revision)
        self._queue.add((self._number, key))

    def taken(self, key: Any) -> KeyAtWork:
        """The key comes out of the queue; `done` or `failed` follows."""
        task = self.progress.taken(key) if self.progress is not None else Task(key)
        return KeyAtWork(task, frozenset(self._rows.pop(key, ())))

    def during(self, work: KeyAtWork, step: Reconcile) -> list[Future[list[int]]]:
        """Does it: what the step adds counts as of the entry that the key is looked at for. The writes to wait for."""
        self._at.revision, self._at.writes = work.task.revision, []
        try:
            answer = step(work.task.key)
        finally:
            self._at.revision = None
        return [*self._at.writes, *([answer] if answer is not None else [])]

    def done(self, work: KeyAtWork) -> None:
        if self.progress is not None:
            self.progress.done(work.task)
        gone = work.rows - self._rows.get(work.task.key, set())
        if gone and self._appointments is not None:
            self._appointments.delete(gone)

    def failed(self, work: KeyAtWork, times: int) -> None:
        """It is tried again; `times`: how often it failed by now."""
        key = work.task.key
        if work.rows:
            self._rows.setdefault(key, set()).update(work.rows)
        elif times >= _OFTEN:
            self._give_up(key)
        if self.progress is not None:
            (self.progress.done if key in self._rows else self.progress.failed)(work.task)

    def _give_up(self, key: Any) -> None:
        """On disk the key stands for the next start; where the store does not take it, the checkpoint waits."""
        try:
            written = self._held(key)
            if written is not None:
                written.result()
        except Exception:
            self._rows.pop(key, None)

    def load(self) -> None:
        """Take up the appointments that are soon."""
        if self._appointments is not None:
            for found in self._appointments.until(time.time() + SOON):
                self._load(found)

    def _load(self, found: Appointment) -> None:
        self._rows.setdefault(found.key, set()).add(found.row)
        self._queue.add_after((self._number, found.key), max(0.0, found.at - time.time()))
