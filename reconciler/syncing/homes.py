"""The downstream namespaces on one target: which workspace's namespace each is, found by its locator annotation."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from apiserver.model import identity
from reconciler.syncing.inventory import applyset_id
from reconciler.syncing.render import CLUSTER_LABEL, Destination

Object = dict[str, Any]

LOCATOR = "kcp.io/namespace-locator"
TENANT = "kcp.io/tenant-id"


@dataclass(frozen=True, slots=True)
class Identity:
    """The sync target in locators. `key`: as in labels."""

    key: str
    cluster: str
    name: str
    uid: str

    def locator(self, cluster: str, namespace: str) -> str:
        return identity.namespace_locator(self.cluster, self.name, self.uid, cluster, namespace)


@dataclass(frozen=True, slots=True)
class Home:
    """A namespace on the target."""

    name: str
    uid: str
    terminating: bool = False

    def destination(self, key: str) -> Destination:
        return Destination(key, self.name, applyset_id(self.name))


class Homes:
    """By (logical cluster, namespace) and back."""

    def __init__(self, target: Identity, changed: Callable[[str, str], None]) -> None:
        self._target, self._changed = target, changed
        self._homes: dict[tuple[str, str], Home] = {}
        self._back: dict[str, tuple[str, str]] = {}
        self._strange: set[str] = set()
        self._lock = threading.Lock()

    def get(self, cluster: str, namespace: str) -> Home | None:
        with self._lock:
            return self._homes.get((cluster, namespace))

    def origin(self, name: str) -> tuple[str, str] | None:
        """Logical cluster and namespace of a namespace on the target."""
        with self._lock:
            return self._back.get(name)

    def all(self) -> dict[tuple[str, str], Home]:
        with self._lock:
            return dict(self._homes)

    def strange(self) -> list[str]:
        """Namespaces that carry our label and a locator that is not ours (an earlier SyncTarget of that name)."""
        with self._lock:
            return sorted(self._strange)

    def saw(self, obj: Object) -> None:
        metadata = obj["metadata"]
        place = self._place((metadata.get("annotations") or {}).get(LOCATOR, ""))
        with self._lock:
            if place is None:
                self._strange.add(metadata["name"])
                return
            held = self._homes.get(place)
            if held is not None and held.name != metadata["name"]:
                # Two with one locator: the first stays, so that nothing moves back and forth.
                self._strange.add(metadata["name"])
                return
            self._homes[place] = Home(metadata["name"], metadata["uid"], "deletionTimestamp" in metadata)
            self._back[metadata["name"]] = place
        self._changed(*place)

    def gone(self, name: str) -> None:
        with self._lock:
            self._strange.discard(name)
            place = self._back.pop(name, None)
            if place is None:
                return
            del self._homes[place]
        self._changed(*place)

    def _place(self, locator: str) -> tuple[str, str] | None:
        try:
            read = orjson.loads(locator)
            place = (str(read["cluster"]), str(read["namespace"]))
        except (ValueError, KeyError, TypeError):
            return None
        return place if self._target.locator(*place) == locator else None

    def manifest(self, cluster: str, namespace: str) -> Object:
        """The namespace to create for a workspace's namespace, named as kcp names it."""
        target, locator = self._target, self._target.locator(cluster, namespace)
        tenant = identity.tenant_id(target.cluster, target.name, target.uid, cluster)
        return {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": identity.downstream_namespace(locator),
                "labels": {CLUSTER_LABEL: target.key, TENANT: tenant},
                "annotations": {LOCATOR: locator},
            },
        }

    def ours(self, obj: Object, cluster: str, namespace: str) -> bool:
        """Whether a namespace found on the target is the one for this workspace's namespace."""
        annotations = obj["metadata"].get("annotations") or {}
        return bool(annotations.get(LOCATOR) == self._target.locator(cluster, namespace))
