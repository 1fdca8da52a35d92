from __future__ import annotations

from typing import Any

import pytest

from apiserver.model.keys import Key
from apiserver.registry.generation import keeps_generation
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Conflict

CM = Key("configmaps", "root", "default", "a")
DEPLOYMENT = Key("deployments.apps:abc", "root", "default", "a")


def obj(kind: str = "ConfigMap", **more: Any) -> dict[str, Any]:
    return {"kind": kind, "apiVersion": "v1", "metadata": {"name": "a", "namespace": "default"}, **more}


def test_create_fills_identity(store: Any) -> None:
    made = Objects(store).create(CM, obj(), runtime=True)
    meta = made["metadata"]
    assert meta["annotations"] == {"kcp.io/cluster": "root", "treeplane.dev/origin": "runtime"}
    assert len(meta["uid"]) == 36 and meta["creationTimestamp"].endswith("Z") and "generation" not in meta
    assert Objects(store).get(CM) == made
    assert "resourceVersion" not in store.get(CM).value.decode()
    with pytest.raises(Conflict):
        Objects(store).create(CM, obj())


def test_generation_follows_spec_only(store: Any) -> None:
    objects = Objects(store)
    assert objects.create(DEPLOYMENT, obj(spec={"replicas": 1}))["metadata"]["generation"] == 1
    after = objects.update(DEPLOYMENT, lambda o: {**o, "status": {"x": 1}}, generation=True)
    assert after is not None and after["metadata"]["generation"] == 1
    after = objects.update(DEPLOYMENT, lambda o: {**o, "spec": {"replicas": 2}}, generation=True)
    assert after is not None and after["metadata"]["generation"] == 2


def test_equal_content_writes_nothing(store: Any) -> None:
    objects = Objects(store)
    objects.create(CM, obj())
    before = store.revision()
    assert objects.update(CM, dict) == objects.get(CM)
    assert objects.update(CM, lambda o: None) == objects.get(CM)
    assert objects.update(Key("configmaps", "root", "default", "b"), lambda o: o) is None
    assert store.revision() == before


def test_update_tries_again_when_another_writer_was_first(store: Any) -> None:
    objects = Objects(store)
    objects.create(CM, obj(data={"n": "0"}))
    raced = []

    def change(o: dict[str, Any]) -> dict[str, Any]:
        if not raced:
            raced.append(1)
            objects.update(CM, lambda p: {**p, "data": {"n": "5"}})
        return {**o, "data": {"n": o["data"]["n"] + "1"}}

    after = objects.update(CM, change)
    assert after is not None and after["data"] == {"n": "51"}


def test_list_goes_page_by_page(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apiserver.registry.objects._PAGE", 2)
    objects = Objects(store)
    for i in range(5):
        objects.create(CM._replace(name=f"n{i}"), obj())
    assert [o["metadata"]["name"] for o in objects.list("configmaps", "root")] == [f"n{i}" for i in range(5)]
    assert objects.delete(CM._replace(name="n0")) and not objects.delete(CM._replace(name="n0"))


def test_which_kinds_keep_generation() -> None:
    kept = ["deployments.apps", "deployments.apps:id", "widgets.example.io", "pods", "workspaces.tenancy.kcp.io",
            "customresourcedefinitions.apiextensions.k8s.io", "jobs.batch"]  # fmt: skip
    assert all(map(keeps_generation, kept))
    assert not any(map(keeps_generation, ["configmaps", "namespaces", "roles.rbac.authorization.k8s.io",
                                          "services", "controllerrevisions.apps"]))  # fmt: skip
