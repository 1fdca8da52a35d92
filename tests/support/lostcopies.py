"""A namespace with state that runs on a target, for tests of what takes it away: no cluster, no controller."""

from __future__ import annotations

import json
from typing import Any

from support.loadedfleet import A, LoadedFleet, configmap
from support.shipped import KUBERNETES, SCHEDULING, binding

from apiserver.model import marks
from apiserver.registry import tree
from reconciler.plan.deletions import PROTECTED, Line

Object = dict[str, Any]

TARGET = "root:infra:west"
BIND = f"{A}/bind.yaml"
SPACE, CLAIM, DATABASE, PLACE = (f"{A}/{name}.json" for name in ("space", "claim", "database", "place"))
PLACEMENTS = "placements.scheduling.kcp.io"


def space(app: str = "web", name: str = "web") -> str:
    return json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"app": app}}})


def claim(name: str = "data", protected: str = "", namespace: str = "web") -> str:
    annotations = {"annotations": {PROTECTED: protected}} if protected else {}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": name, "namespace": namespace, **annotations}
    return json.dumps({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})


def database() -> str:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"serviceName": "db", "selector": {"matchLabels": {"a": "b"}}, "template": template}
    metadata = {"name": "db", "namespace": "web"}
    return json.dumps({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec})


def place(app: str = "web", region: str = "eu", name: str = "prod", **annotations: str) -> str:
    spec = {
        "locationWorkspace": "root:infra",
        "locationSelectors": [{"matchLabels": {"region": region}}],
        "namespaceSelector": {"matchLabels": {"app": app}},
    }
    metadata = {"name": name, "annotations": annotations}
    api = "scheduling.kcp.io/v1alpha1"
    return json.dumps({"apiVersion": api, "kind": "Placement", "metadata": metadata, "spec": spec})


FILES = {
    BIND: binding(KUBERNETES, SCHEDULING),
    SPACE: space(),
    CLAIM: claim(),
    PLACE: place(),
    **{f"{A}/x{n}.yaml": configmap(f"x{n}") for n in range(8)},
}


def decided(fleet: LoadedFleet, name: str = "prod") -> None:
    """As the placements controller records it."""

    def change(obj: Object) -> None:
        obj["metadata"].setdefault("annotations", {})[marks.SYNC_TARGET] = "key-of-west"
        obj["status"] = {"syncTarget": {"path": "root:infra", "name": "west", "key": "key-of-west"}}

    fleet.update(fleet.key("root:a", PLACEMENTS, name, ""), change)


COPY = Line("root:a", "persistentvolumeclaims", "web", "data", copy=True)
"""What is lost where it is taken away."""


def is_placed(fleet: LoadedFleet) -> bool:
    """Whether there is a Placement to decide on."""
    record = tree.workspace_at(fleet.store, "root:a")
    served = record is not None and record.served
    return served and fleet.find("root:a", PLACEMENTS, "prod", "") is not None
