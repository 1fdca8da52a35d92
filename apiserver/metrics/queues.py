"""Controllers' queues, by the names that Kubernetes' controllers have for theirs. Counted by controllers/workqueue."""

from __future__ import annotations

from apiserver.metrics.definition import CountMetric, LevelMetric, TimeMetric

_NAME = ("name",)

DEPTH = LevelMetric(
    "workqueue_depth",
    "Keys that wait for a controller.",
    _NAME,
)
ADDS = CountMetric(
    "workqueue_adds_total",
    "Keys that came to wait.",
    _NAME,
)
RETRIES = CountMetric(
    "workqueue_retries_total",
    "Keys that are tried again after a failure.",
    _NAME,
)
WORK = TimeMetric(
    "workqueue_work_duration_seconds",
    "How long a key was worked on.",
    _NAME,
)
