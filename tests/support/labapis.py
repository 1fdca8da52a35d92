"""An API that one workspace offers and others take, through requests: widgets, offered in root:lab."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.apifleet import ADMIN, LAB_TYPE, ApiFleet

APIS = "/apis/apis.kcp.io/v1alpha1"
TYPES = "/apis/tenancy.kcp.io/v1alpha1/workspacetypes"
WIDGETS = "/apis/example.io/v1/widgets"
LOGICAL_CLUSTER = "/apis/core.kcp.io/v1alpha1/logicalclusters/cluster"
MERGE = "application/merge-patch+json"
LAB, SHOP, DECLARED = "workspaces/root/lab", "workspaces/root/shop", "workspaces/root/declared"
OF_LAB = """\
apiVersion: tenancy.kcp.io/v1alpha1
kind: Workspace
spec: {type: {name: lab, path: root}}
"""
PLAIN = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\n"


def schema(name: str = "v1.widgets.example.io", **properties: str) -> Any:
    fields = {field: {"type": kind} for field, kind in (properties or {"size": "integer"}).items()}
    return {
        "apiVersion": "apis.kcp.io/v1alpha1",
        "kind": "APIResourceSchema",
        "metadata": {"name": name},
        "spec": {
            "group": "example.io",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "scope": "Cluster",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}},
                }
            ],
        },
    }


def export(*schemas: str, name: str = "widgets") -> Any:
    names = list(schemas or ("v1.widgets.example.io",))
    return {
        "apiVersion": "apis.kcp.io/v1alpha1",
        "kind": "APIExport",
        "metadata": {"name": name},
        "spec": {"latestResourceSchemas": names},
    }


def binding(path: str, name: str = "widgets") -> Any:
    return {
        "apiVersion": "apis.kcp.io/v1alpha1",
        "kind": "APIBinding",
        "metadata": {"name": name},
        "spec": {"reference": {"export": {"path": path, "name": "widgets"}}},
    }


def widget(name: str = "w", **spec: Any) -> Any:
    return {"apiVersion": "example.io/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec or {"size": 1}}


def lab(directory: Path) -> ApiFleet:
    """root:lab and root:shop take writes, root:declared does not."""
    made = ApiFleet(directory)
    made.begin(
        {
            "workspaces/root/types.yaml": LAB_TYPE,
            f"{LAB}/workspace.yaml": OF_LAB,
            f"{SHOP}/workspace.yaml": OF_LAB,
            f"{DECLARED}/workspace.yaml": PLAIN,
        }
    )
    assert not made.held()
    return made


def put(fleet: ApiFleet, path: str, *objects: Any, user: str = ADMIN) -> None:
    for obj in objects:
        plural = f"{obj['kind'].lower()}s"
        reply = fleet.call("POST", path, f"{APIS}/{plural}", obj, user=user)
        assert reply.status == 201, reply.message
    fleet.settle()


def bound(fleet: ApiFleet, path: str, name: str = "widgets") -> tuple[str, list[str]]:
    status = fleet.call("GET", path, f"{APIS}/apibindings/{name}").json["status"]
    return status["phase"], [r["schema"]["name"] for r in status["boundResources"]]


def why(fleet: ApiFleet, path: str, condition: str, name: str = "widgets") -> tuple[str, str]:
    found = fleet.call("GET", path, f"{APIS}/apibindings/{name}").json["status"]["conditions"]
    one = next(c for c in found if c["type"] == condition)
    return one["status"], one.get("reason", "")
