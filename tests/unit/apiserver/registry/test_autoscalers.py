"""Autoscalers between v2 and v1, whose annotations are as a kube-apiserver 1.36 writes them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apiserver.registry import autoscalers
from apiserver.registry.behaviours.limits import autoscaler_check

PREFIX = "autoscaling.alpha.kubernetes.io/"


def of(kind: str, field: str, **content: Any) -> dict[str, Any]:
    return {"type": kind, field: content}


SERVICE = {"kind": "Service", "name": "s", "apiVersion": "v1"}
LABELS = {"matchLabels": {"a": "b"}}
CPU = of("Resource", "resource", name="cpu", target={"type": "Utilization", "averageUtilization": 50})
METRICS = [
    of("Resource", "resource", name="memory", target={"type": "AverageValue", "averageValue": "10Mi"}),
    of("Pods", "pods", metric={"name": "m", "selector": LABELS}, target={"type": "AverageValue", "averageValue": "5"}),
    of("Object", "object", metric={"name": "o"}, describedObject=SERVICE, target={"type": "Value", "value": "7"}),
    of("Object", "object", metric={"name": "o"}, describedObject=SERVICE,
       target={"type": "AverageValue", "averageValue": "8"}),
    of("External", "external", metric={"name": "e", "selector": LABELS},
       target={"type": "AverageValue", "averageValue": "9"}),
    of("ContainerResource", "containerResource", name="cpu", container="c",
       target={"type": "Utilization", "averageUtilization": 20}),
]  # fmt: skip
FLAT = [
    of("Resource", "resource", name="memory", targetAverageValue="10Mi"),
    of("Pods", "pods", metricName="m", targetAverageValue="5", selector=LABELS),
    of("Object", "object", target=SERVICE, metricName="o", targetValue="7"),
    of("Object", "object", target=SERVICE, metricName="o", targetValue="0", averageValue="8"),
    of("External", "external", metricName="e", metricSelector=LABELS, targetAverageValue="9"),
    of("ContainerResource", "containerResource", name="cpu", targetAverageUtilization=20, container="c"),
]
CURRENT = [
    of("Resource", "resource", name="cpu", current={"averageUtilization": 33, "averageValue": "1"}),
    of("Pods", "pods", metric={"name": "m"}, current={"averageValue": "5"}),
    of("Object", "object", metric={"name": "o"}, describedObject=SERVICE, current={"value": "7"}),
    of("External", "external", metric={"name": "e"}, current={"averageValue": "9"}),
]
FLAT_CURRENT = [
    of("Resource", "resource", name="cpu", currentAverageUtilization=33, currentAverageValue="1"),
    of("Pods", "pods", metricName="m", currentAverageValue="5"),
    of("Object", "object", target=SERVICE, metricName="o", currentValue="7"),
    of("External", "external", metricName="e", currentValue="0", currentAverageValue="9"),
]
POLICY = {"type": "Percent", "value": 100, "periodSeconds": 15}
BEHAVIOR = {"scaleDown": {"stabilizationWindowSeconds": 5, "selectPolicy": "Max", "policies": [POLICY]}}
GO = {
    "ScaleUp": None,
    "ScaleDown": {"StabilizationWindowSeconds": 5, "SelectPolicy": "Max", "Tolerance": None,
                  "Policies": [{"Type": "Percent", "Value": 100, "PeriodSeconds": 15}]},
}  # fmt: skip
CONDITIONS = [{"type": "AbleToScale", "status": "True", "reason": "r"}]


def v2(**spec: Any) -> dict[str, Any]:
    status = {"currentReplicas": 1, "desiredReplicas": 2, "currentMetrics": CURRENT, "conditions": CONDITIONS}
    return {"metadata": {"name": "h"}, "spec": {"maxReplicas": 3, **spec}, "status": status}


def test_what_v1_cannot_say_stands_in_annotations() -> None:
    made = autoscalers.to_v1(v2(metrics=[CPU, *METRICS], behavior=BEHAVIOR))
    assert made["spec"] == {"maxReplicas": 3, "targetCPUUtilizationPercentage": 50}
    assert made["status"] == {"currentReplicas": 1, "desiredReplicas": 2, "currentCPUUtilizationPercentage": 33}
    notes = {k.removeprefix(PREFIX): json.loads(v) for k, v in made["metadata"]["annotations"].items()}
    assert notes == {
        "metrics": FLAT, "current-metrics": FLAT_CURRENT, "behavior": GO, "conditions": CONDITIONS,
    }  # fmt: skip


def test_nothing_is_lost_on_the_way_back() -> None:
    whole = v2(metrics=[*METRICS, CPU], behavior=BEHAVIOR)
    back = autoscalers.to_v2(autoscalers.to_v1(whole))
    external = {"metric": {"name": "e"}, "current": {"averageValue": "9"}}
    assert back["status"]["currentMetrics"][3]["external"] == external
    assert back == {**whole, "metadata": {"name": "h", "annotations": {}}}


def test_counts_of_nothing() -> None:
    assert autoscalers.to_v1({"metadata": {}, "spec": {}, "status": {}})["status"] == {
        "currentReplicas": 0, "desiredReplicas": 0,
    }  # fmt: skip
    status = {"currentReplicas": 0, "desiredReplicas": 0}
    assert autoscalers.to_v2({"metadata": {}, "spec": {}, "status": status})["status"] == {"desiredReplicas": 0}


@pytest.mark.parametrize("text", ["", "nonsense", "3", "[3]", '{"a": 1}'])
def test_annotations_that_say_nothing(text: str) -> None:
    notes = {f"{PREFIX}{name}": text for name in ("metrics", "current-metrics", "behavior", "conditions")}
    made = autoscalers.to_v2({"metadata": {"annotations": notes}, "spec": {"targetCPUUtilizationPercentage": 5}})
    assert [m["resource"]["name"] for m in made["spec"]["metrics"]] == ["cpu"]
    assert "behavior" not in made["spec"]


HALF = [{"type": "Pods"}, {"type": "New"}, {}, {"type": "Pods", "resource": CPU["resource"]}]


def test_metrics_that_say_too_little_are_their_types() -> None:
    """They are refused; one that is stored, of whatever origin, must not be in the way of all that are listed."""
    types: list[dict[str, Any]] = [{"type": "Pods"}, {"type": "New"}, {}, {"type": "Pods"}]
    made = autoscalers.to_v1({"metadata": {}, "spec": {"metrics": HALF}, "status": {"currentMetrics": HALF}})
    notes = made["metadata"]["annotations"]
    assert json.loads(notes[f"{PREFIX}metrics"]) == json.loads(notes[f"{PREFIX}current-metrics"]) == types
    assert autoscalers.to_v2(made)["spec"]["metrics"] == types


@pytest.mark.parametrize(
    ("metric", "causes"),
    [
        (CPU, []),
        ({"type": "Pods"}, ["pods FieldValueRequired"]),
        ({"type": "New"}, ["type FieldValueNotSupported"]),
        ({}, ["type FieldValueRequired", "type FieldValueNotSupported"]),
        ({"type": "Pods", "resource": CPU["resource"]}, ["pods FieldValueRequired"]),
        ({**CPU, "pods": METRICS[1]["pods"]}, ["pods FieldValueForbidden"]),
    ],
)
def test_each_metric_is_described_as_its_type_says(metric: dict[str, Any], causes: list[str]) -> None:
    """As a kube-apiserver 1.36 answers."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"minReplicas": 1, "maxReplicas": 3, "scaleTargetRef": target, "metrics": [CPU, metric]}
    found = autoscaler_check({"spec": spec})
    assert [f"{each.field.removeprefix('spec.metrics[1].')} {each.reason}" for each in found] == causes
