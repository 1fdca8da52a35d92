"""What ships with Treeplane, as fleets and stores of tests take it."""

from __future__ import annotations

from typing import Any

from apiserver.registry.kinds import SHIPPED_IDENTITY
from reconciler.plan import system

Object = dict[str, Any]

COMPUTE = "computecluster00"
"""The logical cluster of root:compute, where a test makes up its store."""


def binding(*exports: str) -> str:
    """A manifest that binds exports of root:compute, each under its own name; the scheduling and workload ones without
    their group's end."""
    return "---\n".join(
        f"apiVersion: apis.kcp.io/v1alpha1\nkind: APIBinding\nmetadata: {{name: {name}}}\n"
        f"spec: {{reference: {{export: {{path: root:compute, name: {name}}}}}}}\n"
        for name in exports
    )


KUBERNETES, SCHEDULING, WORKLOAD = "kubernetes", "scheduling.kcp.io", "workload.kcp.io"


def bound(cluster: str, export: str) -> list[Object]:
    """Objects as a store has them by which this cluster has bound an export of our own kinds."""
    offered = [s for s in system.own_exports() if s["kind"] == "APIResourceSchema" and s["spec"]["group"] == export]
    schemas = [{**s, "metadata": {**s["metadata"], "annotations": {"kcp.io/cluster": COMPUTE}}} for s in offered]
    resources = [
        {
            "group": export,
            "resource": s["spec"]["names"]["plural"],
            "schema": {"name": s["metadata"]["name"], "identityHash": SHIPPED_IDENTITY},
        }
        for s in schemas
    ]
    made = {
        "apiVersion": "apis.kcp.io/v1alpha1",
        "kind": "APIBinding",
        "metadata": {"name": export, "annotations": {"kcp.io/cluster": cluster}},
        "spec": {"reference": {"export": {"path": system.COMPUTE, "name": export}}},
        "status": {"phase": "Bound", "apiExportClusterName": COMPUTE, "boundResources": resources},
    }
    return [*schemas, made]
