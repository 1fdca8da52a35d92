"""Waiting for the server to have done something, without asking all the time. Called by what makes an object and needs
it: workspaces and bindings."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from reconciler.plugin.client import Object
from reconciler.plugin.session import Session

_Found = TypeVar("_Found")

_FIRST = 0.05
_MORE = 1.5
_LONGEST = 2.0


def until(look: Callable[[], _Found | None], seconds: float) -> _Found | None:
    """What `look` finds first, which is asked ever more seldom; None when time is over."""
    deadline = time.monotonic() + seconds
    pause = _FIRST
    while True:
        found = look()
        left = deadline - time.monotonic()
        if found is not None or left <= 0:
            return found
        time.sleep(min(pause, left))
        pause = min(pause * _MORE, _LONGEST)


def in_phase(phase: str, session: Session, path: str, seen: Object, seconds: float) -> tuple[Object, bool]:
    """The object at `path` of the current workspace as it was last seen, and whether it got to that phase. Raises
    PluginError where it cannot be read."""

    def look() -> Object | None:
        nonlocal seen
        if phase_of(seen) != phase:
            answer = session.client.get(session.within(path))
            if answer.status != 200:
                raise answer.refusal()
            seen = answer.object
        return seen if phase_of(seen) == phase else None

    found = until(look, seconds)
    return seen, found is not None


def phase_of(obj: Object) -> str:
    """As the server says it; empty before it says one."""
    return str((obj.get("status") or {}).get("phase") or "")


def missing(obj: Object) -> str:
    """What an object says it lacks, to be told with what it was waited for; "" if nothing."""
    conditions = (obj.get("status") or {}).get("conditions") or []
    lacking = [c for c in conditions if c.get("status") == "False" and c.get("message")]
    return "".join(f"\n  {c['type']}: {c['message']}" for c in lacking)
