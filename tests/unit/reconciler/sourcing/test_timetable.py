"""Who is visited when: nobody who is quick waits for those that are slow, however many they are."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from reconciler.sourcing.settings import FollowSettings
from reconciler.sourcing.timetable import Timetable

SETTINGS = FollowSettings(interval=60, spread=0.1, longest=600, least=5, slots=8, brief=5)


class Fault(float):
    """Seconds after which a source has a fault."""


@dataclass
class Simulated:
    """Sources by how long a visit takes, and time that passes at once. `ending`: how long a visit takes to end that was
    given up."""

    takes: Mapping[str, float]
    settings: FollowSettings = SETTINGS
    ending: float = 0.01
    now: float = 0.0
    begun: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    done: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    most: int = 0

    def __post_init__(self) -> None:
        self.timetable = Timetable(self.settings, lambda: 0.5)
        self.timetable.follow(self.takes, self.now)
        self._ends: list[tuple[float, int, str]] = []
        self._number = 0
        self._counts: dict[str, int] = {}
        self._given_up = set[str]()

    def run(self, until: float) -> None:
        while self.now < until:
            while self._ends and self._ends[0][0] <= self.now:
                _, number, name = heapq.heappop(self._ends)
                if self._counts.get(name) == number:
                    self._end(name)
            for name in self.timetable.give_up(self.now):
                self._given_up.add(name)
                self._ends_at(name, self.now + self.ending)
            for name in self.timetable.begin(self.now):
                assert name not in self._counts, "two visits to one source"
                self.begun[name].append(self.now)
                self._ends_at(name, self.now + self.takes[name])
            self.most = max(self.most, len(self._counts) - len(self._given_up))
            wait = max(self.timetable.next(self.now), 0.001)
            self.now += min([wait, *(max(end - self.now, 0.001) for end, *_ in self._ends[:1])])

    def _ends_at(self, name: str, when: float) -> None:
        self._number += 1
        self._counts[name] = self._number
        heapq.heappush(self._ends, (when, self._number, name))

    def _end(self, name: str) -> None:
        del self._counts[name]
        if name not in self._given_up:
            self.done[name].append(self.now)
        self._given_up.discard(name)
        self.timetable.ended(name, self.now, not isinstance(self.takes[name], Fault))

    def longest_wait(self, name: str) -> float:
        """Between two visits that were done, the first one counted from the beginning."""
        times = [0.0, *self.done[name], self.now]
        return max(after - before for before, after in pairwise(times))


def test_those_that_hang_delay_nobody() -> None:
    """Three hundred that take a visit's whole time, all new, and two hundred that are well."""
    hang = {f"hang{number}": Fault(120.0) for number in range(300)}
    well = {f"well{number}": 0.1 for number in range(200)}
    world = Simulated({**hang, **well})
    world.run(3600)
    first = max(world.done[name][0] for name in well)
    # Each of the 300 has one of two slots, besides the slow ones' four and the quick ones' two, for five seconds, once.
    assert first <= 300 * 5 / 2 + 30
    world.begun.clear()
    world.done.clear()
    begin, world.now = world.now, world.now
    world.run(begin + 1800)
    for name in well:
        times = world.done[name]
        assert max(b - a for a, b in pairwise(times)) <= 70, "its turn comes as if it were alone"
    assert world.most <= SETTINGS.slots


def test_new_ones_that_hang_delay_none_that_were_quick() -> None:
    takes: dict[str, float] = {f"well{number}": 0.1 for number in range(200)}
    world = Simulated(takes)
    world.run(600)
    takes |= {f"hang{number}": Fault(120.0) for number in range(300)}
    begin = world.now
    world.timetable.follow(takes, begin)
    world.done.clear()
    world.run(begin + 600)
    for number in range(200):
        times = world.done[f"well{number}"]
        assert times[0] <= begin + 66 and max(b - a for a, b in pairwise(times)) <= 66


def test_those_that_were_fetched_before_a_restart_are_no_strangers_after_it() -> None:
    well = [f"well{number}" for number in range(100)]
    world = Simulated({**{f"hang{number}": Fault(120.0) for number in range(300)}, **dict.fromkeys(well, 0.1)})
    world.timetable = Timetable(SETTINGS, lambda: 0.5)
    world.timetable.follow(world.takes, 0, known=set(well))
    world.run(120)
    assert max(world.done[name][0] for name in well) <= 10


def test_one_that_is_slow_and_well_has_its_turn_among_those_that_hang() -> None:
    """A first fetch that takes longer than `brief`: it is given up at most once, and done when it is its turn."""
    hang = {f"hang{number}": Fault(120.0) for number in range(40)}
    world = Simulated({**hang, "large": 60.0})
    world.run(3600)
    assert world.done["large"]
    assert len(world.begun["large"]) - len(world.done["large"]) <= 2
    assert world.done["large"][0] <= 45 * 120 / 4


def test_one_slow_remote_takes_one_slot() -> None:
    world = Simulated({"slow": 120.0, **{f"well{number}": 0.1 for number in range(500)}})
    world.run(600)
    assert max(world.longest_wait(f"well{number}") for number in range(500)) <= 70


@given(
    st.dictionaries(
        st.text("abcdef", min_size=1, max_size=3),
        st.one_of(st.floats(0.01, 4), st.floats(5.1, 120), st.builds(Fault, st.floats(0.01, 120))),
        min_size=1,
        max_size=60,
    ),
    st.integers(1, 8),
    st.floats(0.01, 20),
)
def test_everybody_has_a_turn_and_the_quick_ones_soon(takes: dict[str, float], slots: int, ending: float) -> None:
    world = Simulated(takes, FollowSettings(slots=slots), ending)
    world.run(12_000)
    slow = sum(each >= 5 for each in takes.values())
    for name, each in takes.items():
        assert world.done[name], "nobody is forgotten"
        if each < 5 and not isinstance(each, Fault) and slots > 1:
            # Its own interval, those that are quick as well, and each of the slow ones until it is known.
            assert world.longest_wait(name) <= 66 + 5 * len(takes) + ending * (1 + slow)
    assert world.most <= slots


def test_faults_are_looked_at_less_and_less_often_and_at_once_again_when_they_are_over() -> None:
    takes: dict[str, float] = {"a": Fault(1.0)}
    world = Simulated(takes)
    world.run(8000)
    apart = [round(b - a) for a, b in pairwise(world.begun["a"])]
    assert apart[:5] == [120, 240, 480, 600, 600]
    takes["a"] = 1.0
    before = len(world.begun["a"])
    world.run(world.now + 1000)
    assert round(world.begun["a"][before + 2] - world.begun["a"][before + 1]) == 60


def test_looks_are_spread() -> None:
    timetable = Timetable(SETTINGS, iter([0.0, 1.0]).__next__)
    timetable.follow(["a", "b"], 0)
    assert sorted(timetable.begin(0)) == ["a", "b"]
    timetable.ended("a", 0, True)
    timetable.ended("b", 0, True)
    assert timetable.begin(53.9) == []
    assert timetable.begin(54.1) == ["a"]
    assert timetable.begin(66.1) == ["b"]


def test_who_is_asked_for_is_looked_at_at_once_and_not_again_and_again() -> None:
    timetable = Timetable(SETTINGS, lambda: 0.5)
    timetable.follow(["a"], 0)
    begun = list[float]()
    for tenth in range(0, 600):
        now = tenth / 10
        timetable.ask(["a", "nobody"], now)
        if timetable.begin(now):
            begun.append(now)
            timetable.ask(["a"], now)  # during the visit as well
            timetable.ended("a", now, True)
    assert len(begun) <= 13
    assert all(b - a >= SETTINGS.least - 0.01 for a, b in pairwise(begun))
    assert timetable.next(60.0) <= 5


def test_one_that_is_followed_no_more_is_not_visited() -> None:
    timetable = Timetable(SETTINGS, lambda: 0.5)
    timetable.follow(["a", "b"], 0)
    assert sorted(timetable.begin(0)) == ["a", "b"]
    timetable.follow(["b"], 1)
    timetable.ended("a", 2, True)
    timetable.ended("b", 2, True)
    assert timetable.begin(1000) == ["b"]
    timetable.follow(["a", "b"], 1001)
    assert timetable.begin(1001) == ["a"], "anew"


def test_one_that_comes_back_during_its_last_visit_is_looked_at_once_more() -> None:
    timetable = Timetable(SETTINGS, lambda: 0.5)
    timetable.follow(["a"], 0)
    assert timetable.begin(0) == ["a"]
    timetable.follow([], 1)
    timetable.follow(["a"], 2)
    assert timetable.begin(2) == []
    timetable.ended("a", 3, True)
    assert Counter(timetable.begin(6)) == {"a": 1}
