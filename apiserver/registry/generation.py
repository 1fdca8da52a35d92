"""Which kinds keep metadata.generation, and whether a change counts for it.

Kubernetes keeps it for workloads and a few others but not for data (ConfigMaps, RBAC, Namespaces, …); custom resources
always keep it. Called by objects.py.
"""

from __future__ import annotations

from typing import Any

from apiserver.registry.builtins.catalogue import ENTRIES, having

_KEPT = having(lambda kind: kind.generation)


def keeps_generation(storage: str) -> bool:
    """Of a resource by its store name (`deployments.apps`, `widgets.example.io:<identity>`)."""
    name = storage.partition(":")[0]
    return name in _KEPT or ("." in name and name not in ENTRIES)


def spec_changed(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether anything but metadata and status differs."""
    return _spec(old) != _spec(new)


def _spec(obj: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in obj.items() if k not in ("metadata", "status", "kind", "apiVersion")}
