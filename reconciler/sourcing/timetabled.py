"""Works by a timetable: begins what is due, each in a thread of its own, and gives up what is slow where others wait.

What the follower (visits) and the writer of excerpts (pushes) have in common. What is due is timetable.py's to say, and
what is done theirs. One thread begins; nobody waits for it.
"""

from __future__ import annotations

import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Set
from typing import Generic, Protocol, TypeVar

from reconciler.repository.sourcestore import SourceStore
from reconciler.sourcing.connection import VisitTime
from reconciler.sourcing.settings import FollowSettings
from reconciler.sourcing.timetable import Timetable
from reconciler.sourcing.unwanted import Unwanted


class TimedWork(Protocol):
    """What is done for one source. `name`: of the source. `time`: how long it has, and what gives it up."""

    @property
    def name(self) -> str: ...

    @property
    def time(self) -> VisitTime: ...


Work = TypeVar("Work", bound=TimedWork)


class Timetabled(ABC, Generic[Work]):
    """`store`: where the repositories are, of which no other process writes any; those that nobody wants go. `thread`,
    `each`: names for the thread that begins, and for those that it begins. All of it is under `_changed`."""

    def __init__(self, store: SourceStore, settings: FollowSettings, thread: str, each: str) -> None:
        self._store, self._settings, self._each = store, settings, each
        self._timetable = Timetable(settings, random.random)
        self._under_way: dict[str, Work] = {}
        self._unwanted = Unwanted(store, settings)
        self._changed = threading.Condition()
        self._closed = self._told = False
        self._threads = [threading.Thread(target=self._run, name=thread, daemon=True)]

    @abstractmethod
    def _wanted(self) -> Set[str]:
        """Sources whose repositories stay. Called once somebody has told what is wanted (`_told`)."""

    @abstractmethod
    def _work(self, name: str) -> Work | None:
        """What is to be done for one that is due. None where there is nothing: that is as good as done."""

    @abstractmethod
    def _make(self, work: Work) -> None:
        """Does it, in a thread of its own, and says so (`_over`) whatever happens."""

    def start(self) -> None:
        """Removes what a former self left half made, and begins."""
        self._store.clear()
        for thread in self._threads:
            thread.start()

    def close(self, seconds: float) -> None:
        """What is under way is given up, and after that time not waited for."""
        with self._changed:
            self._closed = True
            for work in self._under_way.values():
                work.time.give_up()
            self._changed.notify_all()
        until = time.monotonic() + seconds
        for thread in self._threads:
            if thread.is_alive() and thread is not threading.current_thread():
                thread.join(max(0.0, until - time.monotonic()))
        with self._changed:
            self._changed.wait_for(lambda: not self._under_way, max(0.0, until - time.monotonic()))

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._closed:
                    return
                begun = self._begin(time.monotonic())
            for work in begun:
                threading.Thread(target=self._make, args=(work,), name=self._each, daemon=True).start()
            with self._changed:
                if not self._closed:
                    self._changed.wait(min(self._timetable.next(time.monotonic()), self._settings.clean))

    def _begin(self, now: float) -> list[Work]:
        for name in self._timetable.give_up(now):
            self._under_way[name].time.give_up()
        begun = list[Work]()
        for name in self._timetable.begin(now):
            work = self._work(name)
            if work is None:
                self._timetable.ended(name, now, well=True)
            else:
                self._under_way[name] = work
                begun.append(work)
        if self._told:
            self._unwanted.clean(self._wanted() | self._under_way.keys(), now)
        return begun

    def _over(self, work: Work, now: float, well: bool) -> None:
        """It has ended. Called with `_changed` held. `well`: see Timetable.ended."""
        del self._under_way[work.name]
        self._timetable.ended(work.name, now, well)
        self._changed.notify_all()
