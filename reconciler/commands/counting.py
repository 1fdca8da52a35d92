"""What loads come to, as metrics have it. Called by the holder, and by the observer, which shows what was judged."""

from __future__ import annotations

import time
from collections.abc import Callable

from apiserver.metrics.fleet import COMMITS_JUDGED, PHASES, WORKSPACES_JUDGED
from reconciler.loading.changeset import together
from reconciler.loading.loader import Loaded


def counted(load: Callable[[], Loaded]) -> Loaded:
    """Loads, and counts it."""
    began = time.monotonic()
    loaded = load()
    PHASES.took(time.monotonic() - began, "load")
    count(loaded)
    return loaded


def count(loaded: Loaded) -> None:
    """`loaded`: all commits up to a head, or some that overtook others."""
    if loaded.problems:
        COMMITS_JUDGED.add("held")
    if loaded.steps:
        COMMITS_JUDGED.add("loaded", by=len(loaded.steps))
    for became, number in together(loaded.steps).counts().items():
        if number:
            WORKSPACES_JUDGED.add(became, by=number)


def shown(seconds: float, workspaces: int) -> None:
    """What another server recorded of a commit is shown: how long that took, and how many workspaces it concerned."""
    PHASES.took(seconds, "load")
    COMMITS_JUDGED.add("shown")
    if workspaces:
        WORKSPACES_JUDGED.add("shown", by=workspaces)


def written() -> None:
    """A commit was made of writes through the API."""
    COMMITS_JUDGED.add("written")
