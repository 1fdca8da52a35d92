"""Status upward: news only, generations translated."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.registry.kinds import kubernetes_builtins
from reconciler.syncing.errors import Unfit
from reconciler.syncing.status import check, lifted

JOB = kubernetes_builtins().preferred("batch", "jobs").schema  # type: ignore[union-attr]


def up(generation: int = 7, **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "x", "generation": generation}, "status": status}


def live(generation: int = 2, **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "x", "generation": generation}, "status": status}


def test_status_comes_up_with_our_generation() -> None:
    found = lifted(up(), live(observedGeneration=2, replicas=1))
    assert found is not None
    assert found["status"] == {"observedGeneration": 7, "replicas": 1}
    behind = lifted(up(7, observedGeneration=6), live(observedGeneration=1, replicas=1))
    assert behind is not None
    assert behind["status"]["observedGeneration"] == 6


def test_nothing_new_is_nothing() -> None:
    ready = {"type": "Ready", "status": "True", "lastUpdateTime": "later", "lastTransitionTime": "later"}
    early = {**ready, "lastUpdateTime": "early", "lastTransitionTime": "early"}
    other = {"type": "Other", "status": "True"}
    assert lifted(up(conditions=[early, other]), live(conditions=[other, ready])) is None
    assert lifted(up(), live()) is None
    assert lifted(up(), {"metadata": {}}) is None


def test_conditions_that_name_a_generation() -> None:
    told = {"type": "Ready", "status": "True", "observedGeneration": 2}
    found = lifted(up(), live(conditions=[told]))
    assert found is not None
    assert found["status"]["conditions"][0]["observedGeneration"] == 7
    old = lifted(up(), live(conditions=[{**told, "observedGeneration": 1}]))
    assert old is not None
    assert old["status"]["conditions"][0]["observedGeneration"] == 6


def test_a_status_that_no_cluster_would_have_stays_there() -> None:
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    for status in ({"a": "x" * 600_000}, {"a": deep}):
        with pytest.raises(Unfit, match="larger than any"):
            check(status, JOB)
    check({"a": "x" * 500_000, "b": [[[1]]]}, JOB)


@pytest.mark.parametrize(
    "status", [{"conditions": ["x"]}, {"conditions": "x"}, {"active": {}}, [], "x", {"succeeded": "1"}]
)
def test_a_status_that_is_none_stays_there(status: Any) -> None:
    """Whoever reads it upstream, the status branch's writer among them, takes it for what its kind says."""
    with pytest.raises(Unfit, match="not one of its kind"):
        check(status, JOB)
    check({"conditions": [{"type": "Complete", "status": "True"}], "succeeded": 1}, JOB)
