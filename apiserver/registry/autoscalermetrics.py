"""Metrics and behaviour of autoscalers as autoscaling/v1 has them in annotations, and as autoscaling/v2 has them.

v1 writes metrics flat (`targetAverageValue`) where v2 has a target, and the behaviour with the names of Go's fields.
A metric that lacks what its type says, or whose type nobody knows, is its type alone in either: whoever writes one is
refused (behaviours/limits), but what is stored has to be readable. Called by autoscalers.py; what cannot be read raises
KeyError, TypeError or AttributeError.
"""

from __future__ import annotations

from typing import Any, NamedTuple

Object = dict[str, Any]

_RESOURCE = {"averageUtilization": "AverageUtilization", "averageValue": "AverageValue"}


class _Form(NamedTuple):
    """How a type of metric is written. `values`: fields of v2's target to what follows `target` or `current` in v1;
    `always`: those that v1 cannot leave out. `selector`: the name of the selector in v1."""

    field: str
    values: dict[str, str]
    always: tuple[str, ...] = ()
    selector: str = ""
    identified: bool = True


_FORMS = {
    "Resource": _Form("resource", _RESOURCE, identified=False),
    "ContainerResource": _Form("containerResource", _RESOURCE, identified=False),
    "Pods": _Form("pods", {"averageValue": "AverageValue"}, ("averageValue",), "selector"),
    "Object": _Form("object", {"value": "Value", "averageValue": ""}, ("value",), "selector"),
    "External": _Form("external", {"value": "Value", "averageValue": "AverageValue"}, (), "metricSelector"),
}


FIELDS = {kind: form.field for kind, form in _FORMS.items()}
"""By the types of metrics the field in which each is described."""


def _sourced(metric: Object) -> tuple[_Form | None, Object]:
    form = _FORMS.get(metric.get("type", ""))
    source = metric.get(form.field) if form is not None else None
    return (form, source) if source is not None else (None, {})


def _typed(metric: Object) -> Object:
    return {"type": metric["type"]} if "type" in metric else {}


def flattened(metric: Object, part: str) -> Object:
    """A metric of v2 as v1 writes it. `part`: `target` of a spec, `current` of a status."""
    form, source = _sourced(metric)
    if form is None:
        return _typed(metric)
    found = _kept(source, form)
    if form.identified:
        identity = source.get("metric") or {}
        found["metricName"] = identity.get("name", "")
        if identity.get("selector"):
            found[form.selector] = identity["selector"]
    if "describedObject" in source:
        found["target"] = source["describedObject"]
    values = source.get(part) or {}
    always = form.always if part == "target" else _always(form)
    for name, flat in form.values.items():
        if values.get(name) is not None:
            found[f"{part}{flat}" if flat else name] = values[name]
        elif name in always:
            found[f"{part}{flat}"] = "0"
    return {"type": metric["type"], form.field: found}


def _always(form: _Form) -> tuple[str, ...]:
    """What a status in v1 cannot leave out."""
    return ("value",) if "value" in form.values else ("averageValue",)


def _kept(source: Object, form: _Form) -> Object:
    return {k: source[k] for k in ("name", "container") if k in source and not form.identified}


def nested(metric: Object, part: str) -> Object:
    """A metric of v1 as v2 writes it."""
    form, source = _sourced(metric)
    if form is None:
        return _typed(metric)
    found = _kept(source, form)
    if form.identified:
        identity = {"name": source.get("metricName", "")}
        if source.get(form.selector):
            identity["selector"] = source[form.selector]
        found["metric"] = identity
    if metric["type"] == "Object":
        found["describedObject"] = source.get("target") or {}
    values = {
        name: source[f"{part}{flat}" if flat else name]
        for name, flat in form.values.items()
        if source.get(f"{part}{flat}" if flat else name) is not None
    }
    if values.get("value") == "0" and "averageValue" in values:
        del values["value"]
    found[part] = {"type": _type(values), **values} if part == "target" else values
    return {"type": metric["type"], form.field: found}


def _type(values: Object) -> str:
    if "averageUtilization" in values:
        return "Utilization"
    return "AverageValue" if "averageValue" in values else "Value"


def capitalised(behavior: Object) -> Object:
    """A behaviour of v2 with the names of Go's fields."""
    rules = {_up(name): _rules(found) for name, found in behavior.items()}
    return {"ScaleUp": None, "ScaleDown": None, **rules}


def _rules(found: Object | None) -> Object | None:
    if found is None:
        return None
    policies = [{_up(k): v for k, v in policy.items()} for policy in found.get("policies") or ()]
    return {
        "StabilizationWindowSeconds": found.get("stabilizationWindowSeconds"),
        "SelectPolicy": found.get("selectPolicy"),
        "Policies": policies or None,
        "Tolerance": found.get("tolerance"),
    }


def decapitalised(behavior: Object) -> Object:
    """The other way round, without nulls."""
    return {
        _down(name): {
            _down(k): [{_down(a): b for a, b in p.items()} for p in v] if isinstance(v, list) else v
            for k, v in rules.items()
            if v is not None
        }
        for name, rules in behavior.items()
        if rules is not None
    }


def _up(name: str) -> str:
    return name[:1].upper() + name[1:]


def _down(name: str) -> str:
    return name[:1].lower() + name[1:]
