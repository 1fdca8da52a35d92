"""What a metric is: its name, what it says, its labels. From the definitions follow what a scrape answers and the
tables of docs/metrics.md.

Each subject has a module beside this one. A label's values are ours: whatever a tenant may name is made one of a
bounded number first (kinds), or has no label. As a last resort each metric knows how many series it may have (`most`):
what comes beyond that is counted under `other`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from enum import StrEnum
from typing import Any

from apiserver.metrics import pending

Labels = tuple[str, ...]
"""Values of a metric's labels, in their order."""

OTHER = "other"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Bounds of how long something takes that somebody waits for."""
LONG = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
"""Of what is done in the background."""

_defined: dict[str, Metric] = {}


class MetricKind(StrEnum):
    """As Prometheus has them."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Metric:
    """`most`: series that it may have. `at_scrape`: read from the store or the machine by who is asked."""

    def __init__(
        self,
        name: str,
        help: str,
        labels: Labels = (),
        *,
        kind: MetricKind,
        bounds: tuple[float, ...] = (),
        most: int = 200,
        at_scrape: bool = False,
    ) -> None:
        self.name, self.help, self.labels = name, help, labels
        self.kind, self.bounds, self.most, self.at_scrape = kind, bounds, most, at_scrape
        self.noted = False
        """Whether pending knows that something waits here."""
        self._waiting: dict[Labels, Any] = {}
        assert name not in _defined, name
        _defined[name] = self

    def take(self) -> Callable[[], None]:
        """Takes what waits, under pending's lock; what is returned writes it, after that."""
        found, self._waiting = self._waiting, {}
        return lambda: pending.write(self, found)


class CountMetric(Metric):
    """Something that happens again and again."""

    def __init__(self, name: str, help: str, labels: Labels = (), *, most: int = 200) -> None:
        super().__init__(name, help, labels, kind=MetricKind.COUNTER, most=most)

    def add(self, *values: str, by: float = 1.0) -> None:
        with pending.lock:
            self._waiting[values] = self._waiting.get(values, 0.0) + by
            if not self.noted:
                pending.note(self)


class LevelMetric(Metric):
    """How much there is now in a process; of several processes the sum. It goes with its process."""

    def __init__(self, name: str, help: str, labels: Labels = (), *, most: int = 200) -> None:
        super().__init__(name, help, labels, kind=MetricKind.GAUGE, most=most)
        self._now: dict[Labels, float] = {}

    def set(self, number: float, *values: str) -> None:
        with pending.lock:
            self._is(number, values)

    def move(self, by: float, *values: str) -> None:
        """Of what several have together."""
        with pending.lock:
            self._is(self._now.get(values, 0.0) + by, values)

    def _is(self, number: float, values: Labels) -> None:
        self._now[values] = self._waiting[values] = number
        if not self.noted:
            pending.note(self)


class TimeMetric(Metric):
    """How long something takes, in seconds."""

    def __init__(
        self, name: str, help: str, labels: Labels = (), *, bounds: tuple[float, ...] = SECONDS, most: int = 200
    ) -> None:
        super().__init__(name, help, labels, kind=MetricKind.HISTOGRAM, bounds=bounds, most=most)

    def took(self, seconds: float, *values: str) -> None:
        with pending.lock:
            found = self._waiting.get(values)
            if found is None:
                found = self._waiting[values] = self.nothing()
            found[0] += seconds
            found[1 + bisect_left(self.bounds, seconds)] += 1
            if not self.noted:
                pending.note(self)

    def nothing(self) -> list[float]:
        """The sum of all seconds; then how often it took up to each bound and longer than the one before; then how
        often longer than the last."""
        return [0.0] * (len(self.bounds) + 2)


class StateMetric(Metric):
    """What is so now, by the store or the machine: nobody counts it, and it is read for each scrape."""

    def __init__(self, name: str, help: str, labels: Labels = (), *, kind: MetricKind = MetricKind.GAUGE) -> None:
        super().__init__(name, help, labels, kind=kind, at_scrape=True)


def defined() -> list[Metric]:
    """All that were imported, by name."""
    return [_defined[name] for name in sorted(_defined)]
