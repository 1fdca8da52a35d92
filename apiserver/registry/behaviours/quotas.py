"""ResourceQuota: what may be counted, and of which Pods and claims. Who counts is a loop."""

from __future__ import annotations

from typing import Any

from apiserver.model.errors import Cause
from apiserver.registry.behaviours.base import IMMUTABLE, Behaviour, Object
from apiserver.registry.quantities import parse
from apiserver.schema import messages

_QUOTA_RESOURCES = frozenset(
    {
        "configmaps",
        "cpu",
        "ephemeral-storage",
        "limits.cpu",
        "limits.ephemeral-storage",
        "limits.memory",
        "memory",
        "persistentvolumeclaims",
        "pods",
        "replicationcontrollers",
        "requests.cpu",
        "requests.ephemeral-storage",
        "requests.memory",
        "requests.storage",
        "resourcequotas",
        "secrets",
        "services",
        "services.loadbalancers",
        "services.nodeports",
    }
)
"""What a quota may count; others are named with their group."""


_OF_PODS = frozenset({"pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"})
_SCOPES = {
    "BestEffort": frozenset({"pods"}),
    "CrossNamespacePodAffinity": _OF_PODS,
    "NotBestEffort": _OF_PODS,
    "NotTerminating": _OF_PODS,
    "PriorityClass": _OF_PODS,
    "Terminating": _OF_PODS,
    "VolumeAttributesClass": frozenset({"persistentvolumeclaims", "requests.storage"}),
}
"""What of the standard resources a quota of that scope may count."""
_APART = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
_WITH_VALUES = frozenset({"PriorityClass", "VolumeAttributesClass"})


def check(obj: Object) -> list[Cause]:
    causes: list[Cause] = []
    for name, value in ((obj.get("spec") or {}).get("hard") or {}).items():
        path = f"spec.hard[{name}]"
        if "/" not in name and name not in _QUOTA_RESOURCES:
            for what in ("resource type or fully qualified", "resource for quota"):
                causes.append(messages.invalid(path, name, f"must be a standard {what}"))
        elif parse(value) < 0:
            causes.append(messages.invalid(path, str(value), "must be greater than or equal to 0"))
    return causes + _scopes(obj.get("spec") or {})


def _scopes(spec: Object) -> list[Cause]:
    counted = sorted(name for name in spec.get("hard") or () if name in _QUOTA_RESOURCES)
    scopes, selector = spec.get("scopes") or [], spec.get("scopeSelector") or {}
    wanted = selector.get("matchExpressions") or []
    named, path = [e.get("scopeName") or "" for e in wanted], "spec.scopeSelector.matchExpressions"
    causes: list[Cause] = []
    for scope in scopes:
        if scope not in _SCOPES:
            causes.append(messages.invalid("spec.scopes", scopes, "unsupported scope"))
        causes += _unfit(scope, counted, "spec.scopes", scopes)
    causes += _conflicting(scopes, "spec.scopes", scopes)
    for expression, scope in zip(wanted, named, strict=True):
        if scope not in _SCOPES:
            causes.append(messages.invalid(f"{path}.scopeName", scope, "unsupported scope"))
        causes += _unfit(scope, counted, path, selector)
        causes += _scope_operator(path, scope, expression)
    return causes + _conflicting(named, path, scopes)


def _unfit(scope: str, counted: list[str], path: str, shown: Any) -> list[Cause]:
    fit = _SCOPES.get(scope, _QUOTA_RESOURCES)
    return [messages.invalid(path, shown, "unsupported scope applied to resource") for n in counted if n not in fit]


def _conflicting(scopes: list[str], path: str, shown: Any) -> list[Cause]:
    return [messages.invalid(path, shown, "conflicting scopes") for pair in _APART if set(pair) <= set(scopes)]


def _scope_operator(path: str, scope: str, expression: Object) -> list[Cause]:
    operator, values = expression.get("operator") or "", expression.get("values") or []
    causes = []
    if scope in _SCOPES.keys() - _WITH_VALUES and operator != "Exists":
        why = (
            "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
            "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or "
            "ResourceQuotaScopeCrossNamespacePodAffinity"
        )
        causes.append(messages.invalid(f"{path}.operator", operator, why))
    if operator in ("In", "NotIn"):
        if not values:
            why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            causes.append(messages.required(f"{path}.values", why))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            causes.append(messages.invalid(f"{path}.values", values, why))
    else:
        causes.append(messages.invalid(f"{path}.operator", operator, "not a valid selector operator"))
    return causes


def check_update(old: Object, new: Object) -> list[Cause]:
    before, after = ((obj.get("spec") or {}).get("scopes") or [] for obj in (old, new))
    return [messages.invalid("spec.scopes", after, IMMUTABLE)] if set(before) != set(after) else []


RESOURCE_QUOTA = Behaviour(check=check, check_update=check_update)
