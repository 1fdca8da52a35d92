"""Requests to the API, by kube-apiserver's names where the meaning is the same. Counted by endpoints/counting."""

from __future__ import annotations

from apiserver.metrics.definition import CountMetric, LevelMetric, TimeMetric

_WHAT = ("verb", "group", "version", "resource", "subresource", "scope")

REQUESTS = CountMetric(
    "apiserver_request_total",
    "Requests that were answered, a watch when it ends; code 0: its client went away before.",
    (*_WHAT, "code"),
    most=1000,
)
DURATIONS = TimeMetric(
    "apiserver_request_duration_seconds",
    "How long requests took, watches aside.",
    _WHAT,
    most=600,
)
INFLIGHT = LevelMetric(
    "apiserver_current_inflight_requests",
    "Requests under way, watches aside, by whether they change something.",
    ("request_kind",),
)
LONG_RUNNING = LevelMetric(
    "apiserver_longrunning_requests",
    "Watches that are open.",
    _WHAT,
    most=400,
)
LISTS = CountMetric(
    "apiserver_cache_list_total",
    "Lists that were answered, all from the store.",
    ("group", "resource", "index"),
    most=400,
)
GIT_REQUESTS = CountMetric(
    "treeplane_git_requests_total",
    "Requests of git to the repository that the server hosts, by service and code.",
    ("service", "code"),
)
CONNECTIONS = LevelMetric(
    "treeplane_connections",
    "Open connections.",
)
CONNECTIONS_REFUSED = CountMetric(
    "treeplane_connections_refused_total",
    "Connections beyond what one address may have.",
)
