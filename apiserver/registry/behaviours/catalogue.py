"""Which behaviour belongs to which kind, by qualified resource."""

from __future__ import annotations

from apiserver.registry.behaviours import data, definitions, limits, networking, own, pods, rbac, services, workloads
from apiserver.registry.behaviours.base import Behaviour

_BEHAVIOURS: dict[str, Behaviour] = {
    **data.BEHAVIOURS,
    **definitions.BEHAVIOURS,
    **limits.BEHAVIOURS,
    **networking.BEHAVIOURS,
    **own.BEHAVIOURS,
    **pods.BEHAVIOURS,
    **rbac.BEHAVIOURS,
    **services.BEHAVIOURS,
    **workloads.BEHAVIOURS,
}
_NONE = Behaviour()


def behaviour_of(qualified: str) -> Behaviour:
    """Of `deployments.apps`; one that does nothing where Kubernetes does nothing."""
    return _BEHAVIOURS.get(qualified, _NONE)
