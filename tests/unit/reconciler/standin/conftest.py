"""An embedded target's store with a stand-in that runs, and a small cluster to write to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from apiserver.model import clock
from apiserver.model.keys import Key
from apiserver.registry import deletion, strategy
from apiserver.registry.catalog import Catalog
from apiserver.registry.kinds import target_builtins
from apiserver.registry.objects import Objects
from apiserver.registry.rest_options import Collection, DeleteOptions
from apiserver.storage.lmdb import open_store
from apiserver.storage.protocol import Store
from apiserver.stores import DECLARED
from reconciler.controllers.feed import Feed
from reconciler.standin import StandIn

Object = dict[str, Any]


class Cluster:
    """Objects are prepared as the API prepares them, then written to the target's store."""

    def __init__(self, store: Store, eventually: Callable[..., Any]) -> None:
        self.store, self.eventually = store, eventually
        self.objects = Objects(store)
        self.catalog = Catalog(store, target_builtins())
        self.begin()

    def begin(self) -> None:
        self.feed = Feed(self.store)
        self.standin = StandIn(self.feed)
        self.standin.start()
        self.feed.start()

    def stop(self) -> None:
        self.feed.stop()
        self.standin.stop()

    def kind(self, obj: Object) -> Any:
        group, _, version = obj["apiVersion"].rpartition("/")
        return self.catalog.kinds("target").by_kind(group, version, obj["kind"])

    def create(self, obj: Object, namespace: str = "default", name: str = "") -> Object:
        kind = self.kind(obj)
        metadata = obj.setdefault("metadata", {})
        metadata.setdefault("name", name)
        if kind.namespaced:
            metadata["namespace"] = namespace
        assert strategy.prepare(kind, obj) == []
        if obj["kind"] == "CustomResourceDefinition":
            obj["status"] = strategy.crd_status(obj, clock.now())
        return self.objects.create(Key(kind.storage, "target", metadata.get("namespace", ""), metadata["name"]), obj)

    def get(self, resource: str, name: str, namespace: str = "default") -> Object | None:
        return self.objects.get(Key(resource, "target", namespace, name))

    def names(self, resource: str, namespace: str | None = "default") -> list[str]:
        return [o["metadata"]["name"] for o in self.list(resource, namespace)]

    def list(self, resource: str, namespace: str | None = "default") -> list[Object]:
        return list(self.objects.list(resource, "target", namespace))

    def update(self, resource: str, name: str, namespace: str = "default", **spec: Any) -> Object | None:
        def change(obj: Object) -> Object:
            obj["spec"].update(spec)
            return obj

        return self.objects.update(Key(resource, "target", namespace, name), change, generation=True)

    def delete(self, group: str, version: str, resource: str, name: str, namespace: str = "default") -> None:
        """Through the API's own deletion."""
        kinds = self.catalog.kinds("target")
        kind = kinds.by_resource(group, version, resource)
        assert kind is not None
        at = Collection(self.store, kind, kinds, "target")
        deletion.delete(at, namespace, name, DeleteOptions())

    def status(self, resource: str, name: str, namespace: str = "default") -> Object:
        return (self.get(resource, name, namespace) or {}).get("status") or {}

    def quiet(self) -> int:
        """The store's revision once the stand-in has nothing left to do."""
        self.eventually(lambda: self.standin.idle)
        return self.store.revision()

    def restart(self) -> None:
        self.stop()
        self.begin()


@pytest.fixture
def target(tmp_path: Path, eventually: Callable[..., Any]) -> Iterator[Cluster]:
    store = open_store(tmp_path / "target", sync=False, declared=DECLARED)
    cluster = Cluster(store, eventually)
    yield cluster
    cluster.stop()
    store.close()


@pytest.fixture
def template() -> Callable[..., Object]:
    def make(image: str = "nginx:1", **spec: Any) -> Object:
        return {
            "metadata": {"labels": {"app": "web"}, "annotations": {"note": "x"}},
            "spec": {"containers": [{"name": "web", "image": image}], **spec},
        }

    return make
