"""Which kinds keep metadata.generation, and whether a change counts for it.

Kubernetes keeps it for workloads and a few others but not for data (ConfigMaps, RBAC, Namespaces, …); custom resources
always keep it. Called by kinds.py and objects.py.
"""

from __future__ import annotations

from typing import Any

BUILTIN_GROUPS = frozenset(
    {
        "",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "apps",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "autoscaling",
        "batch",
        "certificates.k8s.io",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "networking.k8s.io",
        "node.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "resource.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
    }
)

_KEPT_GROUPS = frozenset(
    {"admissionregistration.k8s.io", "apiextensions.k8s.io", "apps", "batch", "flowcontrol.apiserver.k8s.io"}
)
_KEPT = frozenset(
    {
        "deviceclasses.resource.k8s.io",
        "endpointslices.discovery.k8s.io",
        "ingressclasses.networking.k8s.io",
        "ingresses.networking.k8s.io",
        "networkpolicies.networking.k8s.io",
        "poddisruptionbudgets.policy",
        "pods",
        "podtemplates",
        "priorityclasses.scheduling.k8s.io",
        "replicationcontrollers",
        "resourceslices.resource.k8s.io",
    }
)
_NEVER = frozenset({"controllerrevisions.apps"})


def keeps_generation(storage: str) -> bool:
    """Of a resource by its store name (`deployments.apps`, `widgets.example.io:<identity>`)."""
    name = storage.partition(":")[0]
    group = name.partition(".")[2]
    if group not in BUILTIN_GROUPS:
        return True
    return name in _KEPT or (group in _KEPT_GROUPS and name not in _NEVER)


def spec_changed(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether anything but metadata and status differs."""
    return _spec(old) != _spec(new)


def _spec(obj: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in obj.items() if k not in ("metadata", "status", "kind", "apiVersion")}
