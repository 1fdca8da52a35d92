"""Which SyncTargets of a store are real clusters."""

from __future__ import annotations

from typing import Any

import orjson

from apiserver.model.keys import Key
from apiserver.model.storagenames import SYNC_TARGETS
from apiserver.registry import tree
from apiserver.storage.memory import MemoryStore
from apiserver.storage.protocol import Put
from reconciler.statusbranch.realtargets import real_targets


def target(cluster: str, name: str, spec: Any) -> Put:
    obj = {"apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget", "metadata": {"name": name}, "spec": spec}
    return Put(Key(SYNC_TARGETS, cluster, "", name), orjson.dumps(obj))


def test_those_that_a_kubeconfig_is_the_way_to_are_real() -> None:
    store = MemoryStore()
    assert real_targets(store) == ()
    infra = tree.WorkspaceRecord("root:infra", "infracluster0000", "root")
    store.write(
        tree.placed(infra),
        tree.put_workspace(infra),
        target("infracluster0000", "us", {"connection": {"kubeconfigSecretRef": {"name": "us"}}}),
        target("infracluster0000", "eu", {"connection": {"kubeconfigSecretRef": {"name": "eu"}}}),
        target("infracluster0000", "embedded", {"connection": {"embedded": {}}}),
        target("infracluster0000", "talks", {"cells": {"note": "kubeconfigSecretRef"}}),
        target("infracluster0000", "empty", {"connection": {"kubeconfigSecretRef": None}}),
        target("lostcluster00000", "far", {"connection": {"kubeconfigSecretRef": {"name": "far"}}}),
    ).result()
    assert real_targets(store) == ("lostcluster00000:far", "root:infra:eu", "root:infra:us")
