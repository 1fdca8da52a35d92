"""Commits on their way, what is served of them, the repository and the status branch. Counted by the reconciler's
process, read by scrape.
"""

from __future__ import annotations

from apiserver.metrics.definition import LONG, CountMetric, LevelMetric, StateMetric, TimeMetric

COMMITS_SEEN = CountMetric(
    "treeplane_commits_seen_total",
    "Heads of the desired branch that were new.",
)
COMMITS_JUDGED = CountMetric(
    "treeplane_commits_judged_total",
    "Commits that were loaded, that were held as a whole, that were made of writes through the API, or, by "
    "an observer, `shown` as the holder recorded them.",
    ("result",),
)
WORKSPACES_JUDGED = CountMetric(
    "treeplane_workspaces_judged_total",
    "Workspaces that commits concerned, by what became of them; of an observer `shown`.",
    ("result",),
)
PHASES = TimeMetric(
    "treeplane_commit_phase_seconds",
    "How long a commit took: to look (at the repository, fetching what is new), to load (judge and write to the "
    "store), to record (a commit on the status branch), to publish (that in the repository).",
    ("phase",),
    bounds=LONG,
)
LOADED = StateMetric(
    "treeplane_fleet_loaded",
    "1 once the first load is complete.",
)
TROUBLES = StateMetric(
    "treeplane_fleet_trouble",
    "1 for what keeps the fleet as a whole from being followed, by kind.",
    ("kind",),
)
WORKSPACES = StateMetric(
    "treeplane_workspaces",
    "Workspaces that are served.",
)
HELD = StateMetric(
    "treeplane_workspaces_held",
    "Workspaces that are held at an earlier commit.",
)
LAG = StateMetric(
    "treeplane_workspaces_held_lag_commits",
    "How many commits that held workspace is behind that is behind most; at most 1000.",
)
WAITING_SINCE = StateMetric(
    "treeplane_commit_waiting_since_timestamp_seconds",
    "When the head was seen that is not served yet; 0 where all that was seen is served.",
)
AWAY_SINCE = StateMetric(
    "treeplane_repository_away_since_timestamp_seconds",
    "Since when the repository has not answered; 0 where it does.",
)
SOURCES_FAILING = StateMetric(
    "treeplane_sources_failing",
    "Workspaces whose own repository cannot be read, or not be written to.",
)
LOCKED = StateMetric(
    "treeplane_workspaces_locked",
    "Workspaces with something encrypted that no key here reads.",
)
ANNOUNCING = StateMetric(
    "treeplane_announcing_fails",
    "1 where a forge, or who is notified, cannot be told what became of commits; 0 where it can.",
    ("to",),
)

GIT = CountMetric(
    "treeplane_git_operations_total",
    "What was asked of other repositories: look, fetch, push.",
    ("operation", "result"),
)
GIT_SECONDS = TimeMetric(
    "treeplane_git_operation_seconds",
    "How long that took.",
    ("operation",),
    bounds=LONG,
)

STATUS_COMMITS = CountMetric(
    "treeplane_status_commits_total",
    "Commits that were made on the status branch.",
)
STATUS_PUSHES = CountMetric(
    "treeplane_status_pushes_total",
    "Attempts to bring the status branch to the repository.",
    ("result",),
)
STATUS_UNPUSHED = LevelMetric(
    "treeplane_status_unpushed_commits",
    "Commits of the status branch that the repository does not have yet.",
)
STATUS_UNPUSHED_SINCE = LevelMetric(
    "treeplane_status_unpushed_since_timestamp_seconds",
    "When the first of these was made; 0 where there is none.",
)
MIRROR_SIZE = StateMetric(
    "treeplane_mirror_size_bytes",
    "How large the mirror's packs are: the desired branch, the status branch and their histories.",
)
STATUS_BEGAN = LevelMetric(
    "treeplane_status_history_began_timestamp_seconds",
    "When the status branch's history began, which ends at the age that treeplane.yaml gives it.",
)
