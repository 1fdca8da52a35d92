"""HorizontalPodAutoscaler between autoscaling/v2, in which it is stored, and autoscaling/v1.

v1 knows one metric, CPU utilization. What it cannot say stands, as in Kubernetes, in annotations of the v1 object
(other metrics, their current values, behaviour, conditions), so that a v1 client which reads and writes loses nothing.
Called by conversion.py. Nothing given is changed; results may share parts with it.
"""

from __future__ import annotations

from typing import Any

import orjson

Object = dict[str, Any]

_PREFIX = "autoscaling.alpha.kubernetes.io/"
_METRICS, _CURRENT = f"{_PREFIX}metrics", f"{_PREFIX}current-metrics"
_CONDITIONS, _BEHAVIOR = f"{_PREFIX}conditions", f"{_PREFIX}behavior"
_ANNOTATIONS = (_METRICS, _CURRENT, _CONDITIONS, _BEHAVIOR)


def to_v1(obj: Object) -> Object:
    """Of a v2 object; apiVersion is the caller's."""
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    notes: dict[str, Any] = {}
    cpu, others = _split(spec.pop("metrics", None) or [], "target")
    if cpu is not None:
        spec["targetCPUUtilizationPercentage"] = cpu
    behavior = spec.pop("behavior", None)
    current, rest = _split(status.pop("currentMetrics", None) or [], "current")
    if current is not None:
        status["currentCPUUtilizationPercentage"] = current
    for name, value in ((_METRICS, others), (_CURRENT, rest), (_BEHAVIOR, behavior)):
        if value:
            notes[name] = value
    conditions = status.pop("conditions", None)
    if conditions:
        notes[_CONDITIONS] = conditions
    return _built(obj, spec, status, notes)


def to_v2(obj: Object) -> Object:
    """Of a v1 object."""
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    notes = _read(obj)
    metrics = list(notes.get(_METRICS) or ())
    cpu = spec.pop("targetCPUUtilizationPercentage", None)
    if cpu is not None:
        target = {"type": "Utilization", "averageUtilization": cpu}
        metrics.insert(0, {"type": "Resource", "resource": {"name": "cpu", "target": target}})
    if metrics:
        spec["metrics"] = metrics
    if notes.get(_BEHAVIOR):
        spec["behavior"] = notes[_BEHAVIOR]
    current = list(notes.get(_CURRENT) or ())
    seen = status.pop("currentCPUUtilizationPercentage", None)
    if seen is not None:
        value = {"averageUtilization": seen}
        current.insert(0, {"type": "Resource", "resource": {"name": "cpu", "current": value}})
    if current:
        status["currentMetrics"] = current
    if notes.get(_CONDITIONS):
        status["conditions"] = notes[_CONDITIONS]
    return _built(obj, spec, status, {})


def _split(metrics: list[Object], field: str) -> tuple[int | None, list[Object]]:
    """The utilization of the first CPU metric, and the other metrics."""
    for index, metric in enumerate(metrics):
        resource = metric.get("resource") or {}
        value = (resource.get(field) or {}).get("averageUtilization")
        if metric.get("type") == "Resource" and resource.get("name") == "cpu" and value is not None:
            return value, metrics[:index] + metrics[index + 1 :]
    return None, metrics


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


def _read(obj: Object) -> dict[str, Any]:
    """What the annotations say; one that is no JSON says nothing."""
    found = {}
    for name, text in (obj["metadata"].get("annotations") or {}).items():
        if name in _ANNOTATIONS:
            try:
                found[name] = orjson.loads(text)
            except (orjson.JSONDecodeError, TypeError):
                continue
    return found
