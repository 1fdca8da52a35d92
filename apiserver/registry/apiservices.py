"""What the APIServices have in common that a server makes for the groups that it serves itself."""

from __future__ import annotations

from typing import Any

from apiserver.model.conditions import condition

LABEL = "kube-aggregator.kubernetes.io/automanaged"
STARTED, MANAGED = "onstart", "true"
"""Made when the server starts; made and taken away with definitions."""


def available(at: str) -> dict[str, Any]:
    """The condition of one that is served. `at`: since when (RFC 3339)."""
    return condition("Available", True, "Local", "it is served by this server itself", at=at)
