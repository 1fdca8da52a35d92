"""The kinds that a workspace serves: the door to this part of the registry.

Built-in ones (`workspace_builtins`, `target_builtins`), those that definitions make (`kinds_of_crd`,
`kinds_of_schema`), and tables of both (`KindTable`, `overlay`). Which definitions a workspace has is catalog.py's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from apiserver.registry import custom
from apiserver.registry.builtins.served import (
    KUBERNETES,
    SHIPPED_IDENTITY,
    builtins_of,
    common_builtins,
    exported_builtins,
    is_kubernetes,
    kubernetes_builtins,
    kubernetes_kind,
    root_builtins,
    storage_of,
    target_builtins,
    workspace_builtins,
)
from apiserver.registry.custom import kinds_of_crd
from apiserver.registry.kindtable import KindTable, overlay, version_order
from apiserver.registry.served import ALL_VERBS, Column, Scale, ServedKind

__all__ = [
    "ALL_VERBS",
    "KUBERNETES",
    "SHIPPED_IDENTITY",
    "Column",
    "KindTable",
    "Scale",
    "ServedKind",
    "builtins_of",
    "common_builtins",
    "exported_builtins",
    "is_kubernetes",
    "kinds_of_crd",
    "kinds_of_schema",
    "kubernetes_builtins",
    "kubernetes_kind",
    "overlay",
    "root_builtins",
    "storage_of",
    "target_builtins",
    "version_order",
    "workspace_builtins",
]


def kinds_of_schema(schema: dict[str, Any], identity: str) -> list[ServedKind]:
    """One for each served version of an APIResourceSchema that is bound with an identity hash.

    A resource of Kubernetes' own (`deployments.apps`) is served as Kubernetes serves it, strategy, columns and schema
    included; only where its objects are stored is the binding's. What ships of our own is served as it is.
    """
    spec = schema["spec"]
    group, resource = spec["group"], spec["names"]["plural"]
    shipped = identity == SHIPPED_IDENTITY and exported_builtins().preferred(group, resource) is not None
    if not shipped and not is_kubernetes(group, resource):
        return custom.kinds_of_schema(schema, identity)
    kind_of = exported_builtins().by_resource if shipped else target_builtins().by_resource
    found = [kind_of(group, v["name"], resource) for v in spec["versions"] if v.get("served")]
    storage = storage_of(group, resource, identity)
    return [replace(k, storage=storage) for k in found if k is not None]
