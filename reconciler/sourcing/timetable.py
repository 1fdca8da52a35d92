"""Which sources are visited when, so that none waits for one that is slow. Pure: whoever calls says what time it is.

Called by timetabled.py, and by the two that are one: follower.py and excerptwriter.py. Each source has a time at
which it is due; who has been due the longest comes first. A visit that takes longer than `brief` is a slow one, and
slow ones have half of the slots: one that turns out to be slow while that half is full is given up, and comes again
when it is its turn there. A quarter of the slots is kept for those that are known to be quick. So whatever others do,
and however many of them hang, who was quick the last time waits for others of its kind alone, and who is new for
`brief` of each that is new as well, as many at a time as there are slots.

A visit that was given up may take a moment to end (a name that is looked up cannot be interrupted). Its slot is free
meanwhile, for as many as there are slots; its source is not visited again before it has ended.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto

from reconciler.sourcing.settings import FollowSettings

_MOST_DOUBLINGS = 16


_Place = tuple[float, int, str]
"""In a queue: when it is due, a number that makes it this place and no former one, and the source's name."""


class VisitPace(Enum):
    """What is known of how long a visit takes."""

    QUICK = auto()
    NEW = auto()
    SLOW = auto()


@dataclass(slots=True)
class _Entry:
    """`pace`: by its last visit, or the one under way. `began`: of the visit under way, None while there is none.
    `asked`: whether somebody asked for it during a visit. `queued`: as of the one place in a queue that counts."""

    due: float
    pace: VisitPace
    began: float | None = None
    last: float = -math.inf
    failures: int = 0
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
        self._queues: dict[VisitPace, list[_Place]] = {pace: [] for pace in VisitPace}
        self._quick = set[str]()
        self._number = 0

    def follow(self, names: Iterable[str], now: float, known: Container[str] = frozenset()) -> None:
        """These and no others. Those that are new here are due at once; `known`: were quick, as far as one knows."""
        wanted = set(names)
        for name in self._entries.keys() - wanted:
            self._entries[name].wanted = False
            if name not in self._under_way:
                self._drop(name)
        for name in sorted(wanted):
            entry = self._entries.get(name)
            if entry is None:
                entry = self._entries[name] = _Entry(now, VisitPace.QUICK if name in known else VisitPace.NEW)
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
            if entry.pace is not VisitPace.SLOW and now - _began(entry) >= self._settings.brief:
                entry.given_up = self._slow() >= self._half()
                entry.pace = VisitPace.SLOW
                if entry.given_up:
                    found.append(name)
        return found

    def ended(self, name: str, now: float, well: bool) -> None:
        """`well`: whether the source had no fault; of one that was given up it says nothing."""
        entry = self._under_way.pop(name)
        given_up, began = entry.given_up, _began(entry)
        entry.began, entry.given_up, entry.last = None, False, began
        if not entry.wanted:
            self._drop(name)
            return
        if given_up:
            entry.due = now
        else:
            entry.pace = VisitPace.SLOW if now - began >= self._settings.brief else VisitPace.QUICK
            entry.failures = 0 if well else entry.failures + 1
            entry.due = began + self._interval(entry.failures) if not entry.asked else began + self._settings.least
        self._queue(name, entry)

    def next(self, now: float) -> float:
        """Seconds until something is to be done without anybody's asking, at most a minute."""
        times = [now + 60.0]
        times += [
            _began(each) + self._settings.brief for each in self._under_way.values() if each.pace is not VisitPace.SLOW
        ]
        times += [queue[0][0] for queue in self._open()]
        return max(0.0, min(times) - now)

    def _next(self, now: float) -> str | None:
        found = [queue for queue in self._open() if queue[0][0] <= now]
        return heapq.heappop(min(found))[2] if found else None

    def _open(self) -> Iterator[list[_Place]]:
        """The queues of which one may begin, once it is due."""
        free = self._free()
        others = free - (self._settings.slots // 4 if self._quick else 0)
        room = {VisitPace.QUICK: free, VisitPace.NEW: others, VisitPace.SLOW: min(others, self._half() - self._slow())}
        for pace, queue in self._queues.items():
            self._clear(queue)
            if queue and room[pace] > 0:
                yield queue

    def _clear(self, queue: list[_Place]) -> None:
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
        heapq.heappush(self._queues[entry.pace], (entry.due, self._number, name))
        (self._quick.add if entry.pace is VisitPace.QUICK else self._quick.discard)(name)

    def _drop(self, name: str) -> None:
        del self._entries[name]
        self._quick.discard(name)

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
        return sum(entry.pace is VisitPace.SLOW and not entry.given_up for entry in self._under_way.values())


def _began(entry: _Entry) -> float:
    assert entry.began is not None
    return entry.began
