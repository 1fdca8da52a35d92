"""Which behaviour belongs to which kind."""

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
from apiserver.registry.served import ServedKind

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


def behaviour_of(kind: ServedKind) -> Behaviour:
    """Of Kubernetes' kinds and our own; one that does nothing where Kubernetes does nothing. A custom resource is what
    its definition says, whatever its name."""
    return _BEHAVIOURS.get(kind.qualified, _NONE) if kind.builtin else _NONE
