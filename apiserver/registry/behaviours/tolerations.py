"""Tolerations that Pods get: how long they stay on a node that is away, and those of their RuntimeClass."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
_SECONDS = 300
_EXECUTE = "NoExecute"


def default(spec: Object) -> None:
    """Of a Pod's spec, in place: five minutes, unless it says something of its own."""
    found = spec.get("tolerations") or []
    if not isinstance(found, list) or not all(isinstance(t, dict) for t in found):
        return
    missing = [key for key in (NOT_READY, UNREACHABLE) if not any(_says(t, key) for t in found)]
    added = [{"key": key, "operator": "Exists", "effect": _EXECUTE, "tolerationSeconds": _SECONDS} for key in missing]
    if added:
        spec["tolerations"] = [*found, *added]


def _says(toleration: Object, key: str) -> bool:
    return toleration.get("key") in (None, "", key) and toleration.get("effect") in (None, "", _EXECUTE)
