"""HorizontalPodAutoscaler between autoscaling/v2, in which it is stored, and autoscaling/v1.

v1 knows one metric, CPU utilization. What it cannot say stands, as in Kubernetes, in annotations of the v1 object
(other metrics, their current values, behaviour, conditions), so that a v1 client which reads and writes loses nothing.
Called by conversion.py. Nothing given is changed; results may share parts with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from apiserver.registry.autoscalermetrics import capitalised, decapitalised, flattened, nested

Object = dict[str, Any]

_PREFIX = "autoscaling.alpha.kubernetes.io/"
_METRICS, _CURRENT = f"{_PREFIX}metrics", f"{_PREFIX}current-metrics"
_CONDITIONS, _BEHAVIOR = f"{_PREFIX}conditions", f"{_PREFIX}behavior"
_ANNOTATIONS = (_METRICS, _CURRENT, _CONDITIONS, _BEHAVIOR)


def autoscaler(obj: Object, api_version: str) -> Object:
    """A HorizontalPodAutoscaler in that version."""
    made = to_v1(obj) if api_version.endswith("/v1") else to_v2(obj)
    return {**made, "apiVersion": api_version}


def to_v1(obj: Object) -> Object:
    """Of a v2 object; apiVersion is the caller's."""
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    metrics, current = spec.pop("metrics", None) or [], status.pop("currentMetrics", None) or []
    behavior, conditions = spec.pop("behavior", None), status.pop("conditions", None)
    utilization = [u for u in (_of_cpu(m, "target") for m in metrics) if u is not None]
    if utilization:
        spec["targetCPUUtilizationPercentage"] = utilization[0]
    seen = [u for u in (_of_cpu(m, "current") for m in current) if u is not None]
    if seen:
        status["currentCPUUtilizationPercentage"] = seen[-1]
    notes: dict[str, Any] = {}
    others = [flattened(m, "target") for m in metrics if _of_cpu(m, "target") is None]
    for name, value in (
        (_METRICS, others),
        (_CURRENT, [flattened(m, "current") for m in current]),  # the CPU's too: v1 has no place for its raw value
        (_BEHAVIOR, capitalised(behavior) if behavior else None),
        (_CONDITIONS, conditions),
    ):
        if value:
            notes[name] = value
    status.setdefault("currentReplicas", 0)
    status.setdefault("desiredReplicas", 0)
    return _built(obj, spec, status, notes)


def to_v2(obj: Object) -> Object:
    """Of a v1 object."""
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    notes = _read(obj)
    metrics = [nested(m, "target") for m in notes.get(_METRICS) or ()]
    cpu = spec.pop("targetCPUUtilizationPercentage", None)
    if cpu is not None:
        target = {"type": "Utilization", "averageUtilization": cpu}
        metrics.append({"type": "Resource", "resource": {"name": "cpu", "target": target}})
    if metrics:
        spec["metrics"] = metrics
    if notes.get(_BEHAVIOR):
        spec["behavior"] = decapitalised(notes[_BEHAVIOR])
    current = [nested(m, "current") for m in notes.get(_CURRENT) or ()]
    seen = status.pop("currentCPUUtilizationPercentage", None)
    if seen is not None and _CURRENT not in notes:
        current = [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": seen}}}]
    if current:
        status["currentMetrics"] = current
    if notes.get(_CONDITIONS):
        status["conditions"] = notes[_CONDITIONS]
    if not status.get("currentReplicas"):
        status.pop("currentReplicas", None)
    return _built(obj, spec, status, {})


def _of_cpu(metric: Object, part: str) -> int | None:
    """The utilization that a metric of the CPU names."""
    resource = metric.get("resource") or {}
    if metric.get("type") != "Resource" or resource.get("name") != "cpu":
        return None
    found: int | None = (resource.get(part) or {}).get("averageUtilization")
    return found


def _built(obj: Object, spec: Object, status: Object, notes: dict[str, Any]) -> Object:
    metadata = dict(obj["metadata"])
    kept = {k: v for k, v in (metadata.get("annotations") or {}).items() if k not in _ANNOTATIONS}
    kept.update({name: orjson.dumps(value).decode() for name, value in notes.items()})
    if kept or "annotations" in metadata:
        metadata["annotations"] = kept
    made = {**obj, "metadata": metadata, "spec": spec}
    if "status" in obj:
        made["status"] = status
    return made


_SHAPES: dict[str, Callable[[Any], Any]] = {
    _METRICS: lambda value: [nested(m, "target") for m in value],
    _CURRENT: lambda value: [nested(m, "current") for m in value],
    _BEHAVIOR: decapitalised,
    _CONDITIONS: lambda value: [c["type"] for c in value],
}


def _read(obj: Object) -> dict[str, Any]:
    """What the annotations say; one that cannot be read says nothing."""
    found = {}
    for name, text in (obj["metadata"].get("annotations") or {}).items():
        if name in _ANNOTATIONS:
            try:
                value = orjson.loads(text)
                _SHAPES[name](value)
                found[name] = value
            except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
                continue
    return found
