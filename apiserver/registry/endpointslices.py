"""APIExportEndpointSlices: the addresses at which the provider of an APIExport sees its consumers.

An export has one of its own name, unless its annotation says not to. What is stored of an address is its path: where
the server is, is added when it is read.
"""

from __future__ import annotations

from typing import Any

from apiserver.model.marks import NO_SLICE, ORIGIN, SYSTEM
from apiserver.registry.sharing import SharedExport

Object = dict[str, Any]


def wants_one(export: Object) -> bool:
    """Whether an APIExport has a slice of its name."""
    return NO_SLICE not in (export["metadata"].get("annotations") or {})


def own_slice(export: str) -> Object:
    """The slice that an export of that name has by itself."""
    return {
        "apiVersion": "apis.kcp.io/v1alpha1",
        "kind": "APIExportEndpointSlice",
        "metadata": {"name": export, "annotations": {ORIGIN: SYSTEM}},
        "spec": {"export": {"name": export}},
    }


def address(export: SharedExport) -> str:
    """Of the provider's view, without the server."""
    return f"/services/apiexport/{export.cluster}/{export.name}"


def with_host(found: Object, url: str) -> Object:
    """A stored slice with whole addresses; `url`: the server's."""
    status = found.get("status") or {}
    endpoints = [{**each, "url": url + each["url"]} for each in status.get("endpoints") or ()]
    return {**found, "status": {**status, "endpoints": endpoints}} if endpoints else found
