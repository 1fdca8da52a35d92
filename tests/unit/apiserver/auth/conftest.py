"""A store in memory, and helpers that write RBAC objects into it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from support.memorystore import CountingStore

from apiserver.model.keys import Key
from apiserver.storage.protocol import Delete, Put

RBAC = "rbac.authorization.k8s.io"


class RbacStore(CountingStore):
    """Takes objects as they are."""

    def put(self, resource: str, cluster: str, obj: dict[str, Any] | None, name: str, namespace: str = "") -> None:
        key = Key(resource, cluster, namespace, name)
        self.write(Delete(key) if obj is None else Put(key, orjson.dumps(obj))).result()


class Rbac:
    """Writes RBAC objects of one workspace."""

    def __init__(self, store: RbacStore, cluster: str) -> None:
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
def store() -> RbacStore:
    return RbacStore()


@pytest.fixture
def rbac(store: RbacStore) -> Callable[[str], Rbac]:
    return lambda cluster: Rbac(store, cluster)
