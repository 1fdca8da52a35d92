"""What is said of a Pod and of a template that can run and should not be so: recorded from kubectl on a kube-apiserver
1.36, line by line. `pod.yaml` is the Pod; the Deployment's template has the same spec, but for its grace period."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from apiserver.registry import strategy
from apiserver.registry.kinds import kubernetes_builtins

HERE = Path(__file__).parent
POD = (HERE / "pod.yaml").read_text()


def pod() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(POD)
    return found


def deployment() -> dict[str, Any]:
    template = pod()
    del template["spec"]["terminationGracePeriodSeconds"]
    metadata = {"labels": {"a": "b"}, "annotations": template["metadata"]["annotations"]}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": metadata, "spec": template["spec"]}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d.e"}, "spec": spec}


def said(resource: str, group: str, obj: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    obj["metadata"]["namespace"] = "default"
    kind = kubernetes_builtins().preferred(group, resource)
    assert kind is not None
    assert strategy.prepare_create(kind, obj) == []
    return list(strategy.warnings(kind, old, obj))


def test_of_a_pod() -> None:
    assert said("pods", "", pod()) == (HERE / "pod.txt").read_text().splitlines()
    assert said("pods", "", pod(), old=pod()) == []


def test_of_a_template() -> None:
    lines = (HERE / "deployment.txt").read_text().splitlines()
    assert said("deployments", "apps", deployment()) == lines
    before = deployment()
    said("deployments", "apps", before)
    assert said("deployments", "apps", deployment(), old=before) == []
    before["spec"]["replicas"] = 7
    assert said("deployments", "apps", deployment(), old=before) == lines[1:]
