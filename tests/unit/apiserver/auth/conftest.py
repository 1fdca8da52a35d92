"""A store in memory, and helpers that write RBAC objects into it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import orjson
import pytest

from apiserver.model.keys import Key
from apiserver.storage.protocol import Page, Record

RBAC = "rbac.authorization.k8s.io"


class FakeStore:
    """As much of the Store protocol as authorization uses; counts what it is asked."""

    def __init__(self) -> None:
        self.objects: dict[Key, tuple[int, bytes]] = {}
        self.current = 100
        self.marked_at: dict[str, int] = {}
        self.scans = 0

    def marked(self, cluster: str) -> int:
        return self.marked_at.get(cluster, 0)

    def view(self) -> AbstractContextManager[FakeStore]:
        return nullcontext(self)

    def put(self, resource: str, cluster: str, obj: dict[str, Any] | None, name: str, namespace: str = "") -> None:
        key = Key(resource, cluster, namespace, name)
        self.current += 1
        value = None if obj is None else orjson.dumps(obj)
        if value is None:
            del self.objects[key]
        else:
            self.objects[key] = (self.current, value)
        if resource.endswith(RBAC):
            self.marked_at[cluster] = self.current

    def scan(self, resource: str, cluster: str) -> Page:
        self.scans += 1
        found = [Record(k, r, v, b"") for k, (r, v) in self.objects.items() if k[:2] == (resource, cluster)]
        return Page(found, self.current, None, 0)


class Rbac:
    """Writes RBAC objects of one workspace."""

    def __init__(self, store: FakeStore, cluster: str) -> None:
        self.store, self.cluster = store, cluster

    def _put(self, resource: str, name: str, obj: dict[str, Any], namespace: str = "") -> None:
        metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
        obj["metadata"] = {**metadata, **obj.get("metadata", {})}
        self.store.put(f"{resource}.{RBAC}", self.cluster, obj, name, namespace)

    def cluster_role(self, name: str, *rules: dict[str, Any], **more: Any) -> None:
        self._put("clusterroles", name, {"rules": list(rules), **more})

    def role(self, namespace: str, name: str, *rules: dict[str, Any]) -> None:
        self._put("roles", name, {"rules": list(rules)}, namespace)

    def bind(self, role: str, *subjects: tuple[str, str], namespace: str = "", kind: str = "ClusterRole") -> None:
        obj = {
            "roleRef": {"apiGroup": RBAC, "kind": kind, "name": role},
            "subjects": [{"kind": k, "name": n} for k, n in subjects],
        }
        self._put("rolebindings" if namespace else "clusterrolebindings", f"b-{role}", obj, namespace)

    def access(self, *subjects: tuple[str, str]) -> None:
        self.bind("system:kcp:workspace:access", *subjects)


@pytest.fixture
def store() -> FakeStore:
    return FakeStore()


@pytest.fixture
def rbac(store: FakeStore) -> Callable[[str], Rbac]:
    return lambda cluster: Rbac(store, cluster)
