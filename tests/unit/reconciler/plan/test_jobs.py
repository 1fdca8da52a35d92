"""How a Job ends, and when it may go."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.model import clock
from reconciler.plan.jobs import ended, left

AT = "2026-01-01T00:00:00Z"
NOW = clock.parse(AT).timestamp()


def job(*ends: str, ttl: Any = None, said: str = "True", **status: Any) -> dict[str, Any]:
    conditions = [{"type": end, "status": said, "lastTransitionTime": AT} for end in ends]
    spec = {} if ttl is None else {"ttlSecondsAfterFinished": ttl}
    return {"spec": spec, "status": {"conditions": conditions, **status}}


@pytest.mark.parametrize("end", ["Complete", "Failed"])
def test_a_job_ends_well_or_badly(end: str) -> None:
    assert ended(job(end))
    assert ended(job("SuccessCriteriaMet", end))
    assert not ended(job(end, said="False"))


def test_what_runs_waits_or_is_about_to_end_has_not_ended() -> None:
    for found in (job("Suspended"), job("FailureTarget"), job("SuccessCriteriaMet"), job(), {"spec": {}}):
        assert not ended(found)
        assert left({**found, "spec": {"ttlSecondsAfterFinished": 0}}, NOW) is None


def test_its_time_to_live_begins_with_its_end() -> None:
    assert left(job("Complete"), NOW) is None
    assert left(job("Complete", ttl=60, completionTime="2026-01-01T00:00:30Z"), NOW) == 90
    assert left(job("Failed", ttl=60), NOW + 100) == -40
    assert left(job("Failed", ttl=0), NOW) == 0


def test_a_time_that_cannot_be_read_never_comes() -> None:
    assert left(job("Complete", ttl=0, completionTime="soon"), NOW) is None
    assert left(job("Complete", ttl="0"), NOW) is None
    silent = {"conditions": [{"type": "Failed", "status": "True"}]}
    assert left({"spec": {"ttlSecondsAfterFinished": 0}, "status": silent}, NOW) is None
