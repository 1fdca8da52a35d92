"""The only door to prometheus_client: numbers into the files of this process, and the files of all into a text.

Without a place (place.begin was not called: tests, commands) there is one process, and numbers stay in memory. Used by
pending, which writes, and by apiserver/scrape, which answers; imported as late as can be.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, values
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from apiserver.metrics import place
from apiserver.metrics.definition import OTHER, Labels, Metric, MetricKind, defined

log = logging.getLogger(__name__)

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4.encode()

_SIZES = {"counter": 512 << 10, "histogram": 4 << 20, "gauge_livesum": 256 << 10}
"""Bytes of a process' files. They are taken before they are used: a page of a mapped file for which the disk has no
room ends the process that writes to it. `most` of each metric keeps them from growing."""

Sample = tuple[Metric, Labels, float]
"""Of a metric that is read at the scrape."""


class _Numbers:
    """The metrics of this process, as the library has them, made when they are used first."""

    def __init__(self) -> None:
        self.directory = _taken(place.here())
        self.registry = CollectorRegistry()
        self._made: dict[str, Any] = {}
        self._children: dict[str, dict[Labels, Any]] = {}

    def child(self, metric: Metric, labels: Labels) -> Any:
        children = self._children.setdefault(metric.name, {})
        found = children.get(labels)
        if found is None:
            if len(children) >= metric.most and labels:
                labels = (OTHER,) * len(labels)
            made = self._made.get(metric.name) or self._make(metric)
            found = children[labels] = made.labels(*labels) if labels else made
        return found

    def _make(self, metric: Metric) -> Any:
        name, text, labels, registry = metric.name, metric.help, metric.labels, self.registry
        made: Any
        match metric.kind:
            case MetricKind.COUNTER:
                made = Counter(name, text, labels, registry=registry)
            case MetricKind.GAUGE:
                made = Gauge(name, text, labels, registry=registry, multiprocess_mode="livesum")
            case MetricKind.HISTOGRAM:
                made = Histogram(name, text, labels, registry=registry, buckets=metric.bounds)
        self._made[metric.name] = made
        return made


_numbers: _Numbers | None = None


def write(metric: Metric, found: Mapping[Labels, float | list[float]]) -> None:
    """One thread at a time."""
    numbers = _own()
    for labels, number in found.items():
        child = numbers.child(metric, labels)
        if isinstance(number, list):
            # The library takes one observation at a time; here are those of a moment. tests/unit holds it to this.
            child._sum.inc(number[0])
            for bucket, count in zip(child._buckets, number[1:], strict=True):
                if count:
                    bucket.inc(count)
        elif metric.kind is MetricKind.GAUGE:
            child.set(number)
        else:
            child.inc(number)


def text(samples: Iterable[Sample]) -> bytes:
    """All that all processes have counted, and what was read besides, in Prometheus' text format."""
    numbers, registry = _own(), CollectorRegistry()
    if numbers.directory is not None:
        MultiProcessCollector(registry, str(numbers.directory))  # type: ignore[no-untyped-call]
    registry.register(_Read(samples))
    counted = generate_latest(numbers.registry) if numbers.directory is None else b""
    return counted + generate_latest(registry)


def ended(directory: Path, name: str) -> None:
    """A process has ended: what it had open it has no more."""
    mark_process_dead(name, str(directory))  # type: ignore[no-untyped-call]


class _Read:
    """What was read at the scrape, as the library asks for it."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._samples = samples

    def collect(self) -> Iterable[Family]:
        families: dict[str, CounterMetricFamily | GaugeMetricFamily] = {}
        for metric, labels, number in self._samples:
            if metric.name not in families:
                form = CounterMetricFamily if metric.kind is MetricKind.COUNTER else GaugeMetricFamily
                families[metric.name] = form(metric.name, metric.help, labels=metric.labels)
            families[metric.name].add_metric(labels, number)
        yield from families.values()


def _own() -> _Numbers:
    global _numbers  # noqa: PLW0603 - one for the process
    if _numbers is None:
        _numbers = _Numbers()
        for metric in defined():  # what has no labels is there from the first scrape on: an alert must not miss it
            if not metric.at_scrape and not metric.labels:
                _numbers.child(metric, ())
    return _numbers


def _taken(at: place.MetricsPlace | None) -> Path | None:
    """Has the library write to the files of this process. None where there is no room for them: what it counts stays
    in memory then, and nobody is told."""
    if at is None:
        return None
    try:
        for kind, size in _SIZES.items():
            with (at.directory / f"{kind}_{at.name}.db").open("a+b") as file:
                os.posix_fallocate(file.fileno(), 0, size)
    except OSError as error:
        log.warning("no metrics are kept: %s: %s", at.directory, error.strerror)
        return None
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(at.directory)
    # By its task and not by its number: one that is started again goes on in the same files, however often that is.
    values.ValueClass = values.MultiProcessValue(lambda: at.name)  # type: ignore[no-untyped-call]
    return at.directory
