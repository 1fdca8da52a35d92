"""Which sources are visited when, so that none waits for one that is slow. Pure: whoever calls says what time it is.

Called by follower.py. Each source has a time at which it is due; who has been due the longest comes first. A visit
that takes longer than `brief` is a slow one, and slow ones have half of the slots: one that turns out to be slow while
that half is full is given up, and comes again when it is its turn there. So whatever others do, and however many of
them hang, nobody who is quick waits for a slot longer than `brief`, but for those that were due before.

A visit that was given up may take a moment to end (a name that is looked up cannot be interrupted). Its slot is free
meanwhile, for as many as there are slots; its source is not visited again before it has ended.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from reconciler.sourcing.settings import FollowSettings

_MOST_DOUBLINGS = 16


@dataclass(slots=True)
class _Entry:
    """`began`: of the visit under way, None while there is none. `slow`: whether its last visit was, or the one under
    way is. `asked`: when somebody asked for it during a visit. `queued`: as of the one entry of a queue that counts."""

    due: float
    began: float | None = None
    last: float = -math.inf
    failures: int = 0
    slow: bool = False
    given_up: bool = False
    asked: bool = False
    wanted: bool = True
    queued: int = 0


class Timetable:
    """`chance`: a number from 0 to 1, another one each time."""

    def __init__(self, settings: FollowSettings, chance: Callable[[], float]) -> None:
        self._settings, self._chance = settings, chance
        self._entries: dict[str, _Entry] = {}
        self._under_way: dict[str, _Entry] = {}
        self._queues: dict[bool, list[tuple[float, int, str]]] = {False: [], True: []}
        self._number = 0

    def follow(self, names: Iterable[str], now: float) -> None:
        """These and no others. Those that are new are due at once."""
        wanted = set(names)
        for name in self._entries.keys() - wanted:
            self._entries[name].wanted = False
            if name not in self._under_way:
                del self._entries[name]
        for name in sorted(wanted):
            entry = self._entries.get(name)
            if entry is None:
                entry = self._entries[name] = _Entry(now)
                self._queue(name, entry)
            elif not entry.wanted:
                entry.wanted = entry.asked = True

    def ask(self, names: Iterable[str], now: float) -> None:
        """Each of them is due now, or as soon as it may be again. One that is slow, or had faults, is asked for too:
        its turn among those it waits for as ever."""
        for name in names:
            entry = self._entries.get(name)
            if entry is None:
                continue
            if entry.began is not None:
                entry.asked = True
            elif (due := max(now, entry.last + self._settings.least)) < entry.due:
                entry.due = due
                self._queue(name, entry)

    def begin(self, now: float) -> list[str]:
        """Those whose visit begins."""
        found = list[str]()
        while (name := self._next(now)) is not None:
            entry = self._entries[name]
            entry.began, entry.asked, entry.given_up = now, False, False
            self._under_way[name] = entry
            found.append(name)
        return found

    def give_up(self, now: float) -> list[str]:
        """Those under way whose visit is to end, since it is slow and there is no room for it among the slow ones."""
        found = list[str]()
        for name, entry in self._under_way.items():
            if not entry.slow and not entry.given_up and now - _began(entry) >= self._settings.brief:
                entry.given_up = self._slow() >= self._half()
                entry.slow = True
                if entry.given_up:
                    found.append(name)
        return found

    def ended(self, name: str, now: float, well: bool) -> None:
        """`well`: whether the source had no fault; of one that was given up it says nothing."""
        entry = self._under_way.pop(name)
        given_up, began = entry.given_up, _began(entry)
        entry.began, entry.given_up, entry.last = None, False, began
        if not entry.wanted:
            del self._entries[name]
            return
        if given_up:
            entry.due = now
        else:
            entry.slow = now - began >= self._settings.brief
            entry.failures = 0 if well else entry.failures + 1
            entry.due = began + self._interval(entry.failures) if not entry.asked else began + self._settings.least
        self._queue(name, entry)

    def next(self, now: float) -> float:
        """Seconds until something is to be done without anybody's asking, at most a minute."""
        times = [now + 60.0]
        times += [_began(each) + self._settings.brief for each in self._under_way.values() if not each.slow]
        if self._free() > 0:
            for slow, queue in self._queues.items():
                self._clear(queue)
                if queue and (not slow or self._slow() < self._half()):
                    times.append(queue[0][0])
        return max(0.0, min(times) - now)

    def _next(self, now: float) -> str | None:
        if self._free() <= 0:
            return None
        found = list[list[tuple[float, int, str]]]()
        for slow, queue in self._queues.items():
            self._clear(queue)
            if queue and queue[0][0] <= now and (not slow or self._slow() < self._half()):
                found.append(queue)
        return heapq.heappop(min(found))[2] if found else None

    def _clear(self, queue: list[tuple[float, int, str]]) -> None:
        """Drops from its beginning what counts no more."""
        while queue:
            _, number, name = queue[0]
            entry = self._entries.get(name)
            if entry is not None and entry.queued == number and entry.began is None:
                return
            heapq.heappop(queue)

    def _queue(self, name: str, entry: _Entry) -> None:
        self._number += 1
        entry.queued = self._number
        heapq.heappush(self._queues[entry.slow], (entry.due, self._number, name))

    def _interval(self, failures: int) -> float:
        spread = 1 + self._settings.spread * (2 * self._chance() - 1)
        much: float = self._settings.interval * 2 ** min(failures, _MOST_DOUBLINGS)
        return min(much, max(self._settings.longest, self._settings.interval)) * spread

    def _free(self) -> int:
        ending = sum(entry.given_up for entry in self._under_way.values())
        return self._settings.slots - (len(self._under_way) - min(ending, self._settings.slots))

    def _half(self) -> int:
        return max(1, self._settings.slots // 2)

    def _slow(self) -> int:
        return sum(entry.slow and not entry.given_up for entry in self._under_way.values())


def _began(entry: _Entry) -> float:
    assert entry.began is not None
    return entry.began
