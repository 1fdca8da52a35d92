"""What strategies make of objects, against the recorded answers of a kube-apiserver 1.36 (see record.py)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from apiserver.registry import strategy
from apiserver.registry.kinds import target_builtins
from apiserver.schema.patches import merge_patch

HERE = Path(__file__).parent
CORPUS = {f"{o['kind']}/{o['metadata']['name']}": o for o in yaml.safe_load_all((HERE / "corpus.yaml").read_text())}
ANSWERS = json.loads((HERE / "answers.json").read_text())

LEFT_TO_OTHERS = {
    # What the cluster allocates.
    "Service": {"spec.clusterIP", "spec.clusterIPs", "spec.ipFamilies", "spec.ipFamilyPolicy", "spec.ports"},
    "Job": {"metadata.labels", "spec.selector", "spec.manualSelector", "spec.template"},  # need the object's uid
    "Pod": {"spec.preemptionPolicy", "spec.priority", "spec.tolerations", "status.qosClass"},  # admission, kubelet
    "PersistentVolume": {"metadata.finalizers", "status.lastPhaseTransitionTime"},
    "PersistentVolumeClaim": {"metadata.finalizers"},
    "DaemonSet": {"metadata.annotations"},
    "ReplicationController": {"spec.minReadySeconds"},
    "Event": {"eventTime", "firstTimestamp", "lastTimestamp"},  # nulls
    "CSINode": {"spec.drivers"},  # a null in it
    "HorizontalPodAutoscaler": {"status.currentMetrics"},  # a null
    "CustomResourceDefinition": {"status"},  # crd_status
    "Node": {"spec.taints"},  # admission's, for a kubelet to take away
    "VolumeAttributesClass": {"metadata.finalizers"},
}
"""Fields that kube-apiserver sets and these strategies do not, or the other way round."""

OTHER_WORDS = {
    "Deployment/d4": "spec.strategy",
    "PodDisruptionBudget/pdb2": "spec",
    "CustomResourceDefinition/x": "",
    "Endpoints/e2": "subsets",
}
"""Refusals in which kube-apiserver prints Go structs or reports more; ours name the field."""

UPDATES = {f"{c['base']['kind']}/{c['base']['metadata']['name']}": c
           for c in yaml.safe_load((HERE / "updates.yaml").read_text())}  # fmt: skip
UPDATED = json.loads((HERE / "updates.json").read_text())


def differences(ours: Any, theirs: Any, path: str = "") -> set[str]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        keys = ours.keys() | theirs.keys()
        return {d for k in keys for d in differences(ours.get(k), theirs.get(k), f"{path}.{k}".lstrip("."))}
    return set() if ours == theirs else {path}


def prepared(name: str) -> tuple[dict[str, Any], list[list[str]]]:
    obj = json.loads(json.dumps(CORPUS[name], default=str))
    group, _, version = obj["apiVersion"].rpartition("/")
    kind = target_builtins().by_kind(group, version, obj["kind"])
    assert kind is not None
    if kind.namespaced:
        obj["metadata"]["namespace"] = "default"
    causes = strategy.prepare_create(kind, obj)
    return obj, sorted([c.field, c.message] for c in causes)


@pytest.mark.parametrize("name", [n for n, a in ANSWERS.items() if "stored" in a])
def test_accepted_as_kube_apiserver_stores_it(name: str) -> None:
    ours, causes = prepared(name)
    assert causes == []
    theirs = ANSWERS[name]["stored"]
    found = differences(ours, theirs)
    left = LEFT_TO_OTHERS.get(ours["kind"], set())
    assert {f for f in found if f not in left and not any(f.startswith(f"{p}.") for p in left)} == set()


@pytest.mark.parametrize("name", [n for n, a in ANSWERS.items() if "stored" not in a])
def test_refused_in_kube_apiservers_words(name: str) -> None:
    _, causes = prepared(name)
    assert causes
    if name not in OTHER_WORDS:
        assert causes == ANSWERS[name]["causes"]


@pytest.mark.parametrize("name", UPDATES)
def test_updated_as_kube_apiserver_does(name: str) -> None:
    """Its words where they are no Go struct and no difference between two."""
    case = json.loads(json.dumps(UPDATES[name]))
    old = case["base"]
    group, _, version = old["apiVersion"].rpartition("/")
    kind = target_builtins().by_kind(group, version, old["kind"])
    assert kind is not None
    if kind.namespaced:
        old["metadata"]["namespace"] = "default"
    assert strategy.prepare_create(kind, old) == []
    causes = strategy.prepare_update(kind, old, merge_patch(json.loads(json.dumps(old)), case["patch"]))
    theirs = UPDATED[name].get("causes", [])
    assert sorted(c.field for c in causes) == [field for field, _ in theirs]
    said = {c.field: c.message for c in causes}
    for field, message in theirs:
        if "{" not in message:
            assert said[field] == message.partition("\n")[0]
