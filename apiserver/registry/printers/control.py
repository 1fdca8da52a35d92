"""Of the control plane itself: admission, flow control, certificate requests, API services, devices."""

from __future__ import annotations

from typing import Any

from apiserver.model import conditions
from apiserver.registry.printers.base import AGE, NAME, Object, Printer, age, at, columns, duration, name, selector

_UNSET = "<unset>"


def _policy(rules: str) -> Printer:
    """Of an admission policy, whose `rules` are counted."""

    def cells(obj: Object) -> list[Any]:
        parameter = at(obj, "spec", "paramKind")
        shown = f"{parameter.get('apiVersion', '')}/{parameter.get('kind', '')}" if parameter else _UNSET
        return [name(obj), len(at(obj, "spec", rules, default=[])), shown, age(obj)]

    return Printer(columns(NAME, f"{rules.capitalize()}:integer", "ParamKind", AGE), cells)


def _policy_binding(obj: Object) -> list[Any]:
    parameter = at(obj, "spec", "paramRef", default={})
    shown = _UNSET
    if parameter.get("name"):
        shown = f"{parameter.get('namespace') or '*'}/{parameter['name']}"
    elif parameter.get("selector"):
        shown = selector(parameter["selector"])
    return [name(obj), at(obj, "spec", "policyName", default=""), shown, age(obj)]


def _webhooks(obj: Object) -> list[Any]:
    return [name(obj), len(obj.get("webhooks") or ()), age(obj)]


def _flow_schema(obj: Object) -> list[Any]:
    dangling = conditions.get(at(obj, "status", "conditions"), "Dangling") or {}
    return [
        name(obj),
        at(obj, "spec", "priorityLevelConfiguration", "name", default=""),
        at(obj, "spec", "matchingPrecedence", default=0),
        at(obj, "spec", "distinguisherMethod", "type", default="<none>"),
        age(obj),
        dangling.get("status", "?"),
    ]


def _priority_level(obj: Object) -> list[Any]:
    limited = at(obj, "spec", "limited", default={})
    queuing = at(limited, "limitResponse", "queuing", default={})
    numbers = [queuing.get(field, "<none>") for field in ("queues", "handSize", "queueLengthLimit")]
    shares = limited.get("nominalConcurrencyShares", "<none>")
    return [name(obj), at(obj, "spec", "type", default=""), shares, *numbers, age(obj)]


def _certificate_request(obj: Object) -> list[Any]:
    found = {c.get("type") for c in at(obj, "status", "conditions", default=[])}
    state = "Denied" if "Denied" in found else "Approved" if "Approved" in found else "Pending"
    state += ",Failed" if "Failed" in found else ""
    state += ",Issued" if at(obj, "status", "certificate") else ""
    seconds = at(obj, "spec", "expirationSeconds")
    return [
        name(obj),
        age(obj),
        at(obj, "spec", "signerName", default="<none>"),
        at(obj, "spec", "username", default=""),
        "<none>" if seconds is None else duration(seconds),
        state,
    ]


def _api_service(obj: Object) -> list[Any]:
    service = at(obj, "spec", "service")
    available = conditions.get(at(obj, "status", "conditions"), "Available") or {}
    state = available.get("status", "Unknown")
    if state != "True" and available.get("reason"):
        state = f"{state} ({available['reason']})"
    return [name(obj), f"{service['namespace']}/{service['name']}" if service else "Local", state, age(obj)]


def _component(obj: Object) -> list[Any]:
    healthy = conditions.get(obj.get("conditions"), "Healthy") or {}
    state = {"True": "Healthy", "False": "Unhealthy"}.get(healthy.get("status", ""), "Unknown")
    return [name(obj), state, healthy.get("message", ""), healthy.get("error", "")]


def _claim(obj: Object) -> list[Any]:
    states = ["deleted"] if obj["metadata"].get("deletionTimestamp") else []
    if at(obj, "status", "allocation") is not None:
        states.append("allocated")
    elif not states:
        states.append("pending")
    if at(obj, "status", "reservedFor"):
        states.append("reserved")
    return [name(obj), ",".join(states), age(obj)]


def _slice(obj: Object) -> list[Any]:
    spec = obj.get("spec") or {}
    return [name(obj), spec.get("nodeName", ""), spec.get("driver", ""), at(spec, "pool", "name", default=""), age(obj)]


BINDING = Printer(columns(NAME, "PolicyName", "ParamRef", AGE), _policy_binding)
WEBHOOKS = Printer(columns(NAME, "Webhooks:integer", AGE), _webhooks)
_LEVELS = ("Type", "NominalConcurrencyShares", "Queues", "HandSize", "QueueLengthLimit")

API_SERVICE = Printer(columns(NAME, "Service", "Available", AGE), _api_service)
CERTIFICATE_SIGNING_REQUEST = Printer(
    columns(NAME, AGE, "SignerName", "Requestor", "RequestedDuration", "Condition"), _certificate_request
)
COMPONENT_STATUS = Printer(columns(NAME, "Status", "Message", "Error"), _component)
FLOW_SCHEMA = Printer(
    columns(NAME, "PriorityLevel", "MatchingPrecedence", "DistinguisherMethod", AGE, "MissingPL"), _flow_schema
)
MUTATING_ADMISSION_POLICY = _policy("mutations")
PRIORITY_LEVEL_CONFIGURATION = Printer(columns(NAME, *_LEVELS, AGE), _priority_level)
RESOURCE_CLAIM = Printer(columns(NAME, "State", AGE), _claim)
RESOURCE_SLICE = Printer(columns(NAME, "Node", "Driver", "Pool", AGE), _slice)
VALIDATING_ADMISSION_POLICY = _policy("validations")
