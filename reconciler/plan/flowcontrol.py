"""The FlowSchemas and PriorityLevelConfigurations that a cluster starts with. They are there for who looks; requests
are bounded otherwise here (apiserver/endpoints/inflight.py)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apiserver.model.conditions import condition

Object = dict[str, Any]

API_VERSION = "flowcontrol.apiserver.k8s.io/v1"
AUTOUPDATE = {"apf.kubernetes.io/autoupdate-spec": "true"}

_LEVELS = {
    "catch-all": (5, 0, None),
    "global-default": (20, 50, (128, 6)),
    "leader-election": (10, 0, (16, 4)),
    "node-high": (40, 25, (64, 6)),
    "system": (30, 33, (64, 6)),
    "workload-high": (40, 50, (128, 6)),
    "workload-low": (100, 90, (128, 6)),
}
"""Shares, lendable percent, and (queues, hand size) or None for those that reject."""
_QUEUE = 50

_ALL_RESOURCES = {"apiGroups": ["*"], "clusterScope": True, "namespaces": ["*"], "resources": ["*"], "verbs": ["*"]}
_ALL_URLS = {"nonResourceURLs": ["*"], "verbs": ["*"]}
_LEASES = {"apiGroups": ["coordination.k8s.io"], "namespaces": ["*"], "resources": ["leases"]}
_NODES = {"apiGroups": [""], "clusterScope": True, "namespaces": ["*"], "resources": ["nodes", "nodes/status"]}
_PROBES = {"nonResourceURLs": ["/healthz", "/readyz", "/livez"], "verbs": ["get"]}
_EVERYTHING = {"resourceRules": [_ALL_RESOURCES], "nonResourceRules": [_ALL_URLS]}


def _group(name: str) -> Object:
    return {"kind": "Group", "group": {"name": name}}


def _user(name: str) -> Object:
    return {"kind": "User", "user": {"name": name}}


_EVERYONE = [_group("system:unauthenticated"), _group("system:authenticated")]
_SYSTEM_ACCOUNTS = {"kind": "ServiceAccount", "serviceAccount": {"namespace": "kube-system", "name": "*"}}
_MANAGER, _SCHEDULER = _user("system:kube-controller-manager"), _user("system:kube-scheduler")

_SCHEMAS: dict[str, tuple[int, str, str, list[Object], Object]] = {
    "exempt": (1, "exempt", "", [_group("system:masters")], _EVERYTHING),
    "probes": (2, "exempt", "", _EVERYONE, {"nonResourceRules": [_PROBES]}),
    "system-leader-election": (
        100, "leader-election", "ByUser", [_MANAGER, _SCHEDULER, _SYSTEM_ACCOUNTS],
        {"resourceRules": [{**_LEASES, "verbs": ["get", "create", "update"]}]},
    ),
    "system-node-high": (
        400, "node-high", "ByUser", [_group("system:nodes")],
        {"resourceRules": [{**_NODES, "verbs": ["*"]}, {**_LEASES, "verbs": ["*"]}]},
    ),
    "system-nodes": (500, "system", "ByUser", [_group("system:nodes")], _EVERYTHING),
    "kube-controller-manager": (800, "workload-high", "ByNamespace", [_MANAGER], _EVERYTHING),
    "kube-scheduler": (800, "workload-high", "ByNamespace", [_SCHEDULER], _EVERYTHING),
    "kube-system-service-accounts": (900, "workload-high", "ByNamespace", [_SYSTEM_ACCOUNTS], _EVERYTHING),
    "service-accounts": (9000, "workload-low", "ByUser", [_group("system:serviceaccounts")], _EVERYTHING),
    "global-default": (9900, "global-default", "ByUser", _EVERYONE, _EVERYTHING),
    "catch-all": (10000, "catch-all", "ByUser", _EVERYONE, _EVERYTHING),
}  # fmt: skip
"""Precedence, level, distinguisher ("" for none), subjects and rules."""


def objects(at: str) -> Iterator[tuple[str, str, Object]]:
    """Kind, name and content of each. `at`: the time for conditions (RFC 3339)."""
    exempt = {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}}
    yield "PriorityLevelConfiguration", "exempt", {"spec": exempt}
    for name, (shares, lendable, queues) in _LEVELS.items():
        yield "PriorityLevelConfiguration", name, {"spec": _level(shares, lendable, queues)}
    for name, (precedence, level, distinguisher, subjects, rules) in _SCHEMAS.items():
        spec = {
            "matchingPrecedence": precedence,
            "priorityLevelConfiguration": {"name": level},
            **({"distinguisherMethod": {"type": distinguisher}} if distinguisher else {}),
            "rules": [{"subjects": subjects, **rules}],
        }
        dangling = condition("Dangling", False, "Found", f"its priority level {level} exists", at=at)
        yield "FlowSchema", name, {"spec": spec, "status": {"conditions": [dangling]}}


def _level(shares: int, lendable: int, queues: tuple[int, int] | None) -> Object:
    response: Object = {"type": "Reject"}
    if queues is not None:
        queuing = {"queues": queues[0], "handSize": queues[1], "queueLengthLimit": _QUEUE}
        response = {"type": "Queue", "queuing": queuing}
    limited = {"nominalConcurrencyShares": shares, "lendablePercent": lendable, "limitResponse": response}
    return {"type": "Limited", "limited": limited}
