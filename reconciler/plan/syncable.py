"""Which kinds go down to sync targets, and which objects of theirs do not.

Pure. Used by placement (what a target must serve), by the sync targets' status and by the syncer.
"""

from __future__ import annotations

from typing import Any

from apiserver.model.kinds import GroupResource

SYNCED: frozenset[GroupResource] = frozenset(
    GroupResource(group, resource)
    for group, resources in {
        "": "configmaps secrets serviceaccounts services persistentvolumeclaims pods",
        "apps": "deployments statefulsets daemonsets replicasets",
        "batch": "jobs cronjobs",
        "networking.k8s.io": "ingresses networkpolicies",
        "autoscaling": "horizontalpodautoscalers",
        "policy": "poddisruptionbudgets",
    }.items()
    for resource in resources.split()
)
"""Kubernetes' own kinds that run or configure workloads. Access rules, quotas, events and leases stay upstream."""

OPTIONAL: frozenset[GroupResource] = frozenset(
    GroupResource("", r) for r in ("configmaps", "secrets", "serviceaccounts")
)
"""Built in in every workspace, so never a reason why a target is not compatible."""

NEVER_NAMESPACES = frozenset({"kube-system", "kube-public", "kube-node-lease", "kcp-system"})
"""Namespaces that are never synced, as in kcp."""


def syncable(kind: GroupResource, *, namespaced: bool, custom: bool, offered: bool) -> bool:
    """Whether objects of the kind go down. `custom`: not Kubernetes' own. `offered`: bound from an API export that the
    sync target supports (spec.supportedAPIExports); custom kinds need that."""
    return namespaced and (offered if custom else kind in SYNCED)


def stays_upstream(kind: GroupResource, obj: dict[str, Any]) -> bool:
    """Objects that a cluster makes for itself in every namespace: the default ServiceAccount, the CA bundle."""
    name = obj["metadata"]["name"]
    if kind.group:
        return False
    return (kind.resource, name) in (("serviceaccounts", "default"), ("configmaps", "kube-root-ca.crt"))
