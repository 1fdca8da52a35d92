"""Definitions, schemas, exports and bindings of Widgets, as JSON manifests."""

from __future__ import annotations

import json
from typing import Any

NAMES = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}


def _shape(field: str, kind: str, **more: Any) -> dict[str, Any]:
    spec = {"type": "object", "properties": {field: {"type": kind}, **more}}
    return {"type": "object", "properties": {"spec": spec}}


def crd(version: str = "v1", field: str = "size", kind: str = "integer", **more: Any) -> str:
    """The CRD of Widgets whose spec has one field."""
    shape = {"openAPIV3Schema": _shape(field, kind)}
    versions = [{"name": version, "served": True, "storage": True, "schema": shape}]
    spec = {"group": "example.io", "scope": "Namespaced", "names": NAMES, "versions": versions, **more}
    return _object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "widgets.example.io", spec)


def widget(version: str = "v1", name: str = "w", **spec: Any) -> str:
    return _object(f"example.io/{version}", "Widget", name, spec)


def schema(prefix: str = "v1", field: str = "size", kind: str = "integer", **more: Any) -> str:
    """Of Widgets whose spec has one field, and those that `more` gives schemas."""
    versions = [{"name": "v1", "served": True, "storage": True, "schema": _shape(field, kind, **more)}]
    spec = {"group": "example.io", "scope": "Namespaced", "names": NAMES, "versions": versions}
    return _object("apis.kcp.io/v1alpha1", "APIResourceSchema", f"{prefix}.widgets.example.io", spec)


def export(*schemas: str, allow: str = "") -> str:
    """`allow`: a change of schemas (`v1->v2`) that may take less."""
    names = [f"{s}.widgets.example.io" for s in schemas or ("v1",)]
    old, _, new = allow.partition("->")
    turn = f"{old}.widgets.example.io->{new}.widgets.example.io"
    annotations = {"treeplane.dev/allow-incompatible-schema": turn} if allow else {}
    return _object("apis.kcp.io/v1alpha1", "APIExport", "widgets", {"latestResourceSchemas": names}, annotations)


def binding(path: str, name: str = "widgets", wanted: str = "widgets") -> str:
    spec = {"reference": {"export": {"path": path, "name": wanted}}}
    return _object("apis.kcp.io/v1alpha1", "APIBinding", name, spec)


def _object(
    api_version: str, kind: str, name: str, spec: dict[str, Any], annotations: dict[str, str] | None = None
) -> str:
    metadata: dict[str, Any] = {"name": name} | ({"annotations": annotations} if annotations else {})
    return json.dumps({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec})
