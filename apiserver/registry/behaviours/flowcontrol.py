"""FlowSchema and PriorityLevelConfiguration."""

from __future__ import annotations

from apiserver.model.errors import Cause
from apiserver.registry.behaviours.base import Behaviour, Object, at_least, fill, one_of
from apiserver.schema import messages


def flow_schema_default(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec["matchingPrecedence"] = spec.get("matchingPrecedence") or 1000


def flow_schema_check(obj: Object) -> list[Cause]:
    spec, causes = obj["spec"], []
    precedence = spec["matchingPrecedence"]
    if precedence < 1:
        causes.append(messages.invalid("spec.matchingPrecedence", precedence, "must be a positive value"))
    if precedence > 10000:
        text = "must not be greater than 10000"
        causes.append(messages.invalid("spec.matchingPrecedence", precedence, text))
    method = spec.get("distinguisherMethod")
    if method is not None and method.get("type") not in ("ByNamespace", "ByUser"):
        allowed = ["ByNamespace", "ByUser"]
        causes.append(
            messages.unsupported("spec.distinguisherMethod.type", {"Type": method.get("type", "")}, list(allowed))
        )
    if not (spec.get("priorityLevelConfiguration") or {}).get("name"):
        causes.append(messages.required("spec.priorityLevelConfiguration.name", "must reference a priority level"))
    for index, rule in enumerate(spec.get("rules") or ()):
        path = f"spec.rules[{index}]"
        if not rule.get("subjects"):
            causes.append(messages.required(f"{path}.subjects", "subjects must contain at least one value"))
        if not rule.get("resourceRules") and not rule.get("nonResourceRules"):
            text = "at least one of resourceRules and nonResourceRules has to be non-empty"
            causes.append(messages.required(path, text))
    return causes


def level_default(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    limited = spec.get("limited")
    if spec.get("type") == "Exempt":
        fill(spec.setdefault("exempt", {}), nominalConcurrencyShares=0, lendablePercent=0)
    if limited is None:
        return
    fill(limited, nominalConcurrencyShares=30, lendablePercent=0)
    queuing = (limited.get("limitResponse") or {}).get("queuing")
    if queuing is not None:
        for field, value in (("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)):
            queuing[field] = queuing.get(field) or value


def level_check(obj: Object) -> list[Cause]:
    spec = obj["spec"]
    kind = spec.get("type")
    if kind not in ("Exempt", "Limited"):
        return [messages.unsupported("spec.type", kind or "", ["Exempt", "Limited"])]
    if (kind == "Exempt") != (obj["metadata"].get("name") == "exempt"):
        text = "must be 'Exempt' if and only if `name` is 'exempt'"
        return [messages.invalid("spec.type", kind, text)]
    limited = spec.get("limited")
    if kind == "Exempt":
        if limited is None:
            return []
        return [messages.forbidden("spec.limited", "must be nil if the type is not Limited")]
    if limited is None:
        return [messages.required("spec.limited", "must not be empty when type is Limited")]
    causes = at_least("spec.limited.nominalConcurrencyShares", limited["nominalConcurrencyShares"])
    return causes + _response(limited.get("limitResponse") or {})


def _response(response: Object) -> list[Cause]:
    path = "spec.limited.limitResponse"
    kind, queuing = response.get("type"), response.get("queuing")
    if not kind:
        return [messages.required(f"{path}.type")]
    if kind == "Reject" and queuing is not None:
        text = "must be nil if limited.limitResponse.type is not Limited"
        return [messages.forbidden(f"{path}.queuing", text)]
    if kind == "Queue" and queuing is None:
        text = "must not be empty if limited.limitResponse.type is Limited"
        return [messages.required(f"{path}.queuing", text)]
    return one_of(f"{path}.type", kind, ("Queue", "Reject"))


FLOW_SCHEMA = Behaviour(flow_schema_default, flow_schema_check)
PRIORITY_LEVEL_CONFIGURATION = Behaviour(level_default, level_check)
