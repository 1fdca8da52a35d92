"""Which namespaces a Placement selects. Pure; the same for what is stored and for what a commit declares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apiserver.model.selectors import NOTHING, LabelSelector, from_object

Object = dict[str, Any]


def selector_of(placement: Object) -> LabelSelector:
    """The namespaces that a Placement selects; none if it says nothing, or nothing that can be read."""
    try:
        return from_object((placement.get("spec") or {}).get("namespaceSelector"))
    except (KeyError, TypeError, AttributeError):
        return NOTHING


def selectable(namespace: Object) -> tuple[str, Mapping[str, str]]:
    """Name and labels of a Namespace, the name label that Kubernetes gives each included."""
    metadata = namespace["metadata"]
    return metadata["name"], {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}
