"""The kinds that a workspace serves: the door to this part of the registry.

Built-in ones (`workspace_builtins`, `target_builtins`), those that definitions make (`kinds_of_crd`,
`kinds_of_schema`), and tables of both (`KindTable`, `overlay`). Which definitions a workspace has is catalog.py's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from apiserver.model.keys import storage_name
from apiserver.registry import custom
from apiserver.registry.builtins.served import (
    KUBERNETES,
    builtins_of,
    is_kubernetes,
    kubernetes_builtins,
    kubernetes_kind,
    root_builtins,
    target_builtins,
    workspace_builtins,
)
from apiserver.registry.custom import kinds_of_crd
from apiserver.registry.kindtable import KindTable, overlay, version_order
from apiserver.registry.served import ALL_VERBS, Column, Scale, ServedKind

__all__ = [
    "ALL_VERBS",
    "KUBERNETES",
    "Column",
    "KindTable",
    "Scale",
    "ServedKind",
    "builtins_of",
    "is_kubernetes",
    "kinds_of_crd",
    "kinds_of_schema",
    "kubernetes_builtins",
    "kubernetes_kind",
    "overlay",
    "root_builtins",
    "target_builtins",
    "version_order",
    "workspace_builtins",
]


def kinds_of_schema(schema: dict[str, Any], identity: str) -> list[ServedKind]:
    """One for each served version of an APIResourceSchema that is bound with an identity hash.

    A resource of Kubernetes' own (`deployments.apps`) is served as Kubernetes serves it, strategy, columns and schema
    included; only where its objects are stored is the binding's.
    """
    spec = schema["spec"]
    group, resource = spec["group"], spec["names"]["plural"]
    if not is_kubernetes(group, resource):
        return custom.kinds_of_schema(schema, identity)
    found = [kubernetes_kind(group, resource, v["name"]) for v in spec["versions"] if v.get("served")]
    storage = storage_name(group, resource, identity)
    return [replace(k, storage=storage) for k in found if k is not None]
