"""Which behaviour belongs to which kind, by qualified resource."""

from __future__ import annotations

from apiserver.registry.behaviours import (
    addresses,
    apis,
    certificates,
    data,
    definitions,
    flowcontrol,
    limits,
    networking,
    own,
    pods,
    quotas,
    rbac,
    services,
    storage,
    webhooks,
    workloads,
)
from apiserver.registry.behaviours.base import Behaviour

_BEHAVIOURS: dict[str, Behaviour] = {
    **addresses.BEHAVIOURS,
    **apis.BEHAVIOURS,
    **certificates.BEHAVIOURS,
    **data.BEHAVIOURS,
    **definitions.BEHAVIOURS,
    **flowcontrol.BEHAVIOURS,
    **limits.BEHAVIOURS,
    **networking.BEHAVIOURS,
    **own.BEHAVIOURS,
    **pods.BEHAVIOURS,
    **quotas.BEHAVIOURS,
    **rbac.BEHAVIOURS,
    **services.BEHAVIOURS,
    **storage.BEHAVIOURS,
    **webhooks.BEHAVIOURS,
    **workloads.BEHAVIOURS,
}
_NONE = Behaviour()


def behaviour_of(qualified: str) -> Behaviour:
    """Of `deployments.apps`; one that does nothing where Kubernetes does nothing."""
    return _BEHAVIOURS.get(qualified, _NONE)
