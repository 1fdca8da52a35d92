"""The kinds that a workspace serves: the door to this part of the registry.

Built-in ones (`workspace_builtins`, `target_builtins`), those that definitions make (`kinds_of_crd`,
`kinds_of_schema`), and tables of both (`KindTable`, `overlay`). Which definitions a workspace has is catalog.py's.

Where a definition names one of Kubernetes' own kinds (`deployments.apps`) it is served as Kubernetes serves it,
strategy, columns and schema included (behaviours/ofkubernetes); only where its objects stand is the definition's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from apiserver.model.keys import definition_of
from apiserver.registry import custom
from apiserver.registry.behaviours import ofkubernetes
from apiserver.registry.builtins.served import (
    KUBERNETES,
    SHIPPED_IDENTITY,
    builtins_of,
    common_builtins,
    exported_builtins,
    kubernetes_builtins,
    kubernetes_kind,
    root_builtins,
    storage_of,
    target_builtins,
    workspace_builtins,
)
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


def kinds_of_crd(crd: dict[str, Any]) -> list[ServedKind]:
    """One for each served version of a CustomResourceDefinition, established or not."""
    found = _of_kubernetes(crd["spec"])
    if not found:
        return custom.kinds_of_crd(crd)
    return [replace(kind, definition=definition_of(kind.storage)) for kind in found]


def kinds_of_schema(schema: dict[str, Any], identity: str) -> list[ServedKind]:
    """One for each served version of an APIResourceSchema that is bound with an identity hash. What ships of our own is
    served as it is."""
    spec = schema["spec"]
    group, resource = spec["group"], spec["names"]["plural"]
    if identity == SHIPPED_IDENTITY and exported_builtins().preferred(group, resource) is not None:
        shipped = (
            exported_builtins().by_resource(group, v["name"], resource) for v in spec["versions"] if v.get("served")
        )
        return [kind for kind in shipped if kind is not None]
    storage = storage_of(group, resource, identity)
    return [replace(k, storage=storage) for k in _of_kubernetes(spec)] or custom.kinds_of_schema(schema, identity)


def _of_kubernetes(spec: dict[str, Any]) -> list[ServedKind]:
    """The kinds of Kubernetes' own that a definition names; [] where it is another's."""
    group, resource = spec.get("group") or "", spec["names"]["plural"]
    found = (kubernetes_kind(group, resource, version) for version in ofkubernetes.versions_of(spec))
    return [kind for kind in found if kind is not None]
