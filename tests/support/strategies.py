"""Objects of built-in kinds and definitions, and what the registry's strategies make of them."""

from __future__ import annotations

import copy
from typing import Any

from apiserver.registry import kinds, strategy

WORKSPACE, TARGET = kinds.common_builtins(), kinds.target_builtins()


def kind(group: str, resource: str, version: str = "v1") -> kinds.ServedKind:
    found = WORKSPACE.by_resource(group, version, resource) or TARGET.by_resource(group, version, resource)
    assert found is not None
    return found


def prepared(group: str, resource: str, obj: dict[str, Any], version: str = "v1") -> dict[str, Any]:
    served = kind(group, resource, version)
    assert strategy.prepare(served, obj) == []
    again = copy.deepcopy(obj)
    assert strategy.prepare(served, again) == [] and again == obj
    return obj


def errors(group: str, resource: str, obj: dict[str, Any], version: str = "v1") -> dict[str, str]:
    return {c.field: c.message for c in strategy.prepare(kind(group, resource, version), obj)}


def named(name: str = "a", namespace: str = "default", **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **({"namespace": namespace} if namespace else {})}, **more}


def template(**spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [{"name": "c", "image": "nginx:1.27"}], **spec},
    }


def deployment(**spec: Any) -> dict[str, Any]:
    return named(spec={"selector": {"matchLabels": {"app": "a"}}, "template": template(), **spec})


def crd(**version: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": {"type": "object"}}}
    return {
        "metadata": {"name": "widgets.example.io"},
        "spec": {
            "group": "example.io",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **version}
            ],
        },
    }


CRDS = ("apiextensions.k8s.io", "customresourcedefinitions")
