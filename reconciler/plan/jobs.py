"""How a Job ends, and when it may go. Pure; reads a Job as it is stored or as a target shows it."""

from __future__ import annotations

from typing import Any

from apiserver.model import clock, conditions
from apiserver.model.conditions import Condition
from apiserver.model.kinds import GroupResource

JOBS = GroupResource("batch", "jobs")
_ENDS = ("Complete", "Failed")

Object = dict[str, Any]


def ended(job: Object) -> bool:
    """Whether it is over, well or badly. It is not run again then, wherever its Pods or copies are."""
    return _end(job) is not None


def left(job: Object, now: float) -> float | None:
    """Seconds until its time to live has passed (spec.ttlSecondsAfterFinished), at most 0 once it has; None where it
    has none, has not ended, or does not say when. `now`: seconds since 1970."""
    end, seconds = _end(job), (job.get("spec") or {}).get("ttlSecondsAfterFinished")
    if end is None or not isinstance(seconds, int):
        return None
    try:
        at = clock.parse(str((job.get("status") or {}).get("completionTime") or end["lastTransitionTime"]))
    except (KeyError, ValueError):
        return None
    return at.timestamp() + seconds - now


def _end(job: Object) -> Condition | None:
    said = (job.get("status") or {}).get("conditions")
    return next((conditions.get(said, end) for end in _ENDS if conditions.is_true(said, end)), None)
