"""The labels of a Pod's node that say where it stands, copied to the Pod when it is placed there."""

from __future__ import annotations

from typing import Any

from apiserver.admission.place import Place

Object = dict[str, Any]

PLUGIN = "PodTopologyLabels"
NODES = "nodes"
_COPIED = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def complete(place: Place, pod: Object) -> None:
    """Of a new Pod that names its node."""
    spec = pod.get("spec")
    if isinstance(spec, dict):
        _label(pod, _of_node(place, spec.get("nodeName")))


def complete_binding(place: Place, binding: Object) -> None:
    """Of a Binding, whose labels the Pod gets."""
    target = binding.get("target")
    if isinstance(target, dict) and target.get("kind") == "Node":
        _label(binding, _of_node(place, target.get("name")))


def _of_node(place: Place, name: Any) -> dict[str, str]:
    """None of a node that nobody knows."""
    node = place.get(NODES, name) if isinstance(name, str) and name else None
    labels = (node or {"metadata": {}})["metadata"].get("labels") or {}
    return {key: labels[key] for key in _COPIED if key in labels}


def _label(obj: Object, labels: dict[str, str]) -> None:
    metadata = obj.get("metadata")
    if not labels or not isinstance(metadata, dict):
        return
    found = metadata.get("labels") or {}
    if isinstance(found, dict):
        metadata["labels"] = {**found, **labels}
