"""Health of workloads on a target."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.model.kinds import GroupResource
from reconciler.plan.health import healthy


def live(spec: dict[str, Any], status: dict[str, Any], generation: int = 1) -> dict[str, Any]:
    return {"metadata": {"name": "x", "generation": generation}, "spec": spec, "status": status}


@pytest.mark.parametrize(
    ("kind", "spec", "status", "expected"),
    [
        (
            "deployments.apps",
            {"replicas": 2},
            {"observedGeneration": 1, "updatedReplicas": 2, "availableReplicas": 2},
            True,
        ),
        (
            "deployments.apps",
            {"replicas": 2},
            {"observedGeneration": 1, "updatedReplicas": 2, "availableReplicas": 1},
            False,
        ),
        ("deployments.apps", {"replicas": 0}, {"observedGeneration": 0}, False),
        ("statefulsets.apps", {}, {"observedGeneration": 1, "readyReplicas": 1}, True),
        ("daemonsets.apps", {}, {"observedGeneration": 1, "desiredNumberScheduled": 3, "numberAvailable": 2}, False),
        ("jobs.batch", {}, {"conditions": [{"type": "Complete", "status": "True"}]}, True),
        ("jobs.batch", {}, {"active": 1, "ready": 0}, False),
        ("jobs.batch", {"suspend": True}, {}, True),
        ("pods.", {}, {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}, True),
        ("configmaps.", {}, {}, True),
    ],
)
def test_healthy(kind: str, spec: dict[str, Any], status: dict[str, Any], expected: bool) -> None:
    resource, _, group = kind.partition(".")
    assert healthy(GroupResource(group, resource), live(spec, status)) is expected
