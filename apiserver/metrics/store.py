"""The store: how large it is, and how long its transactions take. Counted by storage/lmdb_writer, read by scrape."""

from __future__ import annotations

from apiserver.metrics.definition import CountMetric, MetricKind, StateMetric, TimeMetric

SIZE = StateMetric(
    "treeplane_store_size_bytes",
    "How large the store's file is.",
)
SIZE_LIMIT = StateMetric(
    "treeplane_store_size_limit_bytes",
    "How large it may become; nothing is written beyond that.",
)
REVISION = StateMetric(
    "treeplane_store_revision",
    "The store's revision, which each write raises.",
    kind=MetricKind.GAUGE,
)
COMMITS = TimeMetric(
    "treeplane_store_commit_seconds",
    "How long a transaction of the store took, until it was on disk.",
    bounds=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0),
)
FAILURES = CountMetric(
    "treeplane_store_commit_failures_total",
    "Transactions of the store that failed, for want of room above all.",
)
