"""LimitRange, HorizontalPodAutoscaler, PodDisruptionBudget, PriorityClass, Lease."""

from __future__ import annotations

from apiserver.model.errors import Cause
from apiserver.registry.autoscalermetrics import FIELDS
from apiserver.registry.behaviours.base import Behaviour, Object, at_least, fill, immutable, one_of
from apiserver.registry.quantities import parse
from apiserver.schema import messages

_HIGHEST = 1_000_000_000
_SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def limit_range_default(obj: Object) -> None:
    for item in (obj.get("spec") or {}).get("limits") or ():
        if item.get("type") != "Container":
            continue
        for name, value in (item.get("max") or {}).items():
            item.setdefault("default", {}).setdefault(name, value)
        for source in ("default", "min"):
            for name, value in (item.get(source) or {}).items():
                item.setdefault("defaultRequest", {}).setdefault(name, value)


def autoscaler_default(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("minReplicas", 1)
    if obj["apiVersion"] == "autoscaling/v1":
        others = "autoscaling.alpha.kubernetes.io/metrics" in (obj["metadata"].get("annotations") or {})
        if not others:
            spec.setdefault("targetCPUUtilizationPercentage", 80)
        return
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior = spec.get("behavior")
    if behavior is not None:
        up, down = behavior.setdefault("scaleUp", {}), behavior.setdefault("scaleDown", {})
        fill(up, stabilizationWindowSeconds=0, selectPolicy="Max")
        up.setdefault("policies", [_policy("Pods", 4), _policy("Percent", 100)])
        fill(down, selectPolicy="Max")
        down.setdefault("policies", [_policy("Percent", 100)])


def _policy(kind: str, value: int) -> Object:
    return {"type": kind, "value": value, "periodSeconds": 15}


def autoscaler_check(obj: Object) -> list[Cause]:
    spec = obj["spec"]
    causes = at_least("spec.minReplicas", spec["minReplicas"], 1)
    most = spec.get("maxReplicas") or 0
    if most < 1:
        causes.append(messages.required("spec.maxReplicas", "must be set and greater than 0"))
    if most < spec["minReplicas"]:
        causes.append(messages.invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"))
    target = spec.get("scaleTargetRef") or {}
    causes += [messages.required(f"spec.scaleTargetRef.{f}") for f in ("kind", "name") if not target.get(f)]
    if "/" not in (target.get("apiVersion") or "") and target.get("kind") != "ReplicationController":
        text = "apiVersion must specify API group"
        causes.append(messages.invalid("spec.scaleTargetRef.apiVersion", target.get("apiVersion") or "", text))
    for number, metric in enumerate(spec.get("metrics") or ()):
        causes += _metric_check(f"spec.metrics[{number}]", metric)
    return causes


def _metric_check(field: str, metric: Object) -> list[Cause]:
    """That it is described, as what its type says and as nothing else."""
    kind = metric.get("type") or ""
    said = sorted(name for name in FIELDS.values() if metric.get(name) is not None)
    causes = []
    if not kind:
        causes.append(messages.required(f"{field}.type", "must specify a metric source type"))
    if kind not in FIELDS:
        causes.append(messages.unsupported(f"{field}.type", kind, sorted(FIELDS)))
    elif FIELDS[kind] not in said:
        text = "must populate information for the given metric source"
        causes.append(messages.required(f"{field}.{FIELDS[kind]}", text))
    if len(said) != 1:
        others = [name for name in said if name != FIELDS.get(kind)]
        causes += [
            messages.forbidden(f"{field}.{name}", "must populate the given metric source only") for name in others
        ]
    return causes


def budget_check(obj: Object) -> list[Cause]:
    spec = obj.get("spec") or {}
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        text = "minAvailable and maxUnavailable cannot be both set"
        return [messages.invalid("spec", spec, text)]
    return []


def priority_class_default(obj: Object) -> None:
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")


def priority_class_check(obj: Object) -> list[Cause]:
    name, value, causes = obj["metadata"].get("name") or "", obj.get("value") or 0, []
    if name.startswith("system-"):
        if _SYSTEM_PRIORITIES.get(name) != value:
            why = "is not a known system priority class" if name not in _SYSTEM_PRIORITIES else "has another value"
            text = f"priority class names with 'system-' prefix are reserved for system use only. error: {name} {why}"
            causes.append(messages.forbidden("metadata.name", text))
    elif value > _HIGHEST:
        text = f"maximum allowed value of a user defined priority is {_HIGHEST}"
        causes.append(messages.forbidden("value", text))
    policy = obj["preemptionPolicy"]
    return causes + one_of("preemptionPolicy", policy, ("PreemptLowerPriority", "Never"))


def priority_class_update(old: Object, new: Object) -> list[Cause]:
    causes = []
    if (old.get("value") or 0) != (new.get("value") or 0):
        causes.append(messages.forbidden("value", "may not be changed in an update."))
    return causes + immutable("preemptionPolicy", old.get("preemptionPolicy"), new.get("preemptionPolicy"))


def limit_range_check(obj: Object) -> list[Cause]:
    causes: list[Cause] = []
    for index, item in enumerate((obj.get("spec") or {}).get("limits") or ()):
        path = f"spec.limits[{index}]"
        if not item.get("type"):
            causes.append(messages.required(f"{path}.type"))
        least, most, given, asked = (item.get(f) or {} for f in ("min", "max", "default", "defaultRequest"))
        for name in sorted({*least, *most, *given, *asked}):
            for low, low_name, high, high_name, at in (
                (least, "min", most, "max", "min"),
                (least, "min", asked, "default request", "defaultRequest"),
                (least, "min", given, "default", "default (min)"),
                (asked, "default request", most, "max", "defaultRequest"),
                (given, "default", most, "max", "default"),
                (asked, "default request", given, "default", "defaultRequest"),
            ):
                if name in low and name in high and parse(low[name]) > parse(high[name]):
                    shown = {"min": least, "default (min)": least, "defaultRequest": asked, "default": given}[at]
                    text = f"{low_name} value {low[name]} is greater than {high_name} value {high[name]}"
                    where = f"{path}.{at.partition(' ')[0]}[{name}]"
                    causes.append(messages.invalid(where, str(shown[name]), text))
    return causes


def lease_check(obj: Object) -> list[Cause]:
    spec = obj.get("spec") or {}
    causes: list[Cause] = []
    seconds = spec.get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        causes.append(messages.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
    return causes + at_least("spec.leaseTransitions", spec.get("leaseTransitions"))


HORIZONTAL_POD_AUTOSCALER = Behaviour(autoscaler_default, autoscaler_check)
LEASE = Behaviour(check=lease_check)
LIMIT_RANGE = Behaviour(limit_range_default, limit_range_check)
POD_DISRUPTION_BUDGET = Behaviour(check=budget_check)
PRIORITY_CLASS = Behaviour(priority_class_default, priority_class_check, priority_class_update)
