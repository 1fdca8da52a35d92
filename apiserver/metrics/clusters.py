"""Sync targets and what runs on them, all together: their names are their owners' to choose. Counted by
reconciler/syncing, read by scrape.
"""

from __future__ import annotations

from apiserver.metrics.definition import CountMetric, LevelMetric, StateMetric, TimeMetric

TARGETS = StateMetric(
    "treeplane_targets",
    "Sync targets, by whether they are ready (true, false, unknown).",
    ("ready",),
)
CREDENTIALS_END = LevelMetric(
    "treeplane_target_credentials_expiration_timestamp_seconds",
    "When the first of the sync targets' credentials ends; 0 where none is known to end.",
)
PLACEMENTS_AMISS = StateMetric(
    "treeplane_placements_amiss",
    "Placements that are not placed, not ready or not synced.",
)
REQUESTS = CountMetric(
    "treeplane_target_requests_total",
    "Requests to sync targets that were answered; code 0: not answered.",
    ("verb", "code"),
)
LATENCY = TimeMetric(
    "treeplane_target_request_seconds",
    "How long sync targets took to answer, watches aside.",
    ("verb",),
)
DRIFT = CountMetric(
    "treeplane_target_drift_total",
    "Copies that were put right because they differed from what they had been applied as.",
)
FAILURES = CountMetric(
    "treeplane_target_failures_total",
    "Objects that a sync target refused or could not be asked to take.",
)
