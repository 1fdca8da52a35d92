"""Syncing against real kube-apiservers: what stands in the store runs on clusters, and comes back when they fail."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from realclusters.cluster import TOKEN
from support.realsyncing import C1, IDENTITY, QUICK, Downstream, World

from apiserver.model.identity import sync_target_key
from apiserver.model.keys import Key
from apiserver.model.marks import LEAVING, SYNC_TARGET
from apiserver.registry import codec
from apiserver.storage.protocol import Put
from reconciler.syncing.inventory import PARENT_NAME
from reconciler.syncing.service import Syncing

pytestmark = [pytest.mark.clusters, pytest.mark.slow]


def test_objects_run_on_the_cluster_and_their_status_comes_up(
    world: World, west: Downstream, syncing: Callable[[], Syncing], eventually: Any
) -> None:
    placement = world.place()
    web = world.deploy()
    world.config("settings", colour="blue")
    world.config("kube-root-ca.crt", ca="the workspace's")
    secret = {"kind": "Secret", "apiVersion": "v1", "type": "Opaque", "data": {"password": "aHVudGVyMg=="}}
    world.put("secrets", "shop0", "login", "web", **secret)
    ports = [{"port": 80, "targetPort": 80, "protocol": "TCP"}]
    service = {"kind": "Service", "apiVersion": "v1", "spec": {"selector": {"app": "web"}, "ports": ports}}
    world.put(f"services:{IDENTITY}", "shop0", "web", "web", **service)
    syncing()
    eventually(lambda: (world.get(web).get("status") or {}).get("availableReplicas") == 1, 60)
    eventually(lambda: west.names("configmaps") == {"settings"})
    eventually(lambda: west.names("secrets") == {"login"})
    eventually(lambda: west.names("services") == {"web"})
    live = west.list("deployments")["web"]
    assert not [k for k in live["metadata"]["annotations"] if "treeplane" in k or "kcp.io" in k]
    locator = west.list("namespaces")[west.namespace]["metadata"]["annotations"]["kcp.io/namespace-locator"]
    assert json.loads(locator)["cluster"] == "shop0"
    eventually(lambda: west.list("configmaps")[PARENT_NAME]["data"]["commit"] == C1)
    kept = west.list("configmaps")[PARENT_NAME]["metadata"]["annotations"]
    assert kept["applyset.kubernetes.io/contains-group-kinds"] == "ConfigMap,Deployment.apps,Secret,Service"
    status = world.get(web)["status"]
    assert status["observedGeneration"] == world.get(web)["metadata"]["generation"]
    eventually(lambda: world.condition(placement, "Synced").get("status") == "True")
    assert world.annotation(placement, SYNC_TARGET) == sync_target_key("infra0", "west")

    world.deploy(replicas=3)
    eventually(lambda: world.get(web)["status"].get("availableReplicas") == 3, 60)


def test_drift_is_reverted_and_deletions_follow(
    world: World, west: Downstream, syncing: Callable[[], Syncing], eventually: Any
) -> None:
    world.place()
    settings = world.config("settings", colour="blue", size="1")
    world.config("other", a="b")
    syncing()
    eventually(lambda: west.names("configmaps") == {"settings", "other"}, 60)
    namespace = west.namespace

    def data() -> Any:
        return west.list("configmaps").get("settings", {}).get("data")

    west.cluster.kubectl("patch", "configmap", "settings", "-n", namespace, "-p", '{"data":{"colour":"red"}}')
    eventually(lambda: data() == {"colour": "blue", "size": "1"})
    west.cluster.kubectl("label", "configmap", "settings", "-n", namespace, "internal.workload.kcp.io/cluster-")
    eventually(lambda: data() == {"colour": "blue", "size": "1"})
    west.cluster.kubectl("delete", "configmap", "settings", "-n", namespace)
    eventually(lambda: data() == {"colour": "blue", "size": "1"})
    west.cluster.kubectl("delete", "configmap", PARENT_NAME, "-n", namespace)
    eventually(lambda: PARENT_NAME in west.list("configmaps"), what="the inventory is made anew")
    world.config("settings", colour="green")
    eventually(lambda: data() == {"colour": "green"})
    world.delete(settings)
    eventually(lambda: west.names("configmaps") == {"other"})
    world.delete(Key("configmaps", "shop0", "web", "other"))
    eventually(lambda: not west.list("namespaces"), 60)


def test_a_restart_writes_nothing_and_prunes_what_git_explains(
    world: World, west: Downstream, syncing: Callable[[], Syncing], eventually: Any
) -> None:
    placement = world.place()
    web = world.deploy()
    gone, kept = world.config("gone", a="b"), world.config("unexplained", a="b")
    first = syncing()
    eventually(lambda: (world.get(web).get("status") or {}).get("availableReplicas") == 1, 60)
    eventually(lambda: west.list("configmaps")[PARENT_NAME]["data"]["commit"] == C1)
    key = sync_target_key("infra0", "west")
    eventually(lambda: not first.syncers()[key].queue.pending())
    before, stored, applied = west.revisions(), world.store.revision(), west.applied()
    assert applied

    second = syncing()
    eventually(lambda: key in second.syncers() and second.syncers()[key].settled("shop0", "web"), 60)
    eventually(lambda: not second.syncers()[key].queue.pending())
    assert west.revisions() == before
    assert west.applied() == applied, "what is as it was is not asked for by a dry run either"
    assert [(c.key, c.value, c.previous) for c in world.store.changes(stored)] == []

    second.stop()
    world.delete(gone)
    world.delete(kept)
    world.git.add(("configmaps", "gone"))
    syncing()
    eventually(lambda: west.names("configmaps") == {"unexplained"}, 60)
    target = Key("synctargets.workload.kcp.io", "infra0", "", "west")
    # Of those before it is said that all was explained.
    eventually(lambda: world.condition(target, "InventoryExplained").get("status") == "False")
    assert "configmaps web/unexplained" in world.condition(target, "InventoryExplained")["message"]
    assert west.names("configmaps") == {"unexplained"}
    assert world.condition(placement, "Synced")["status"] == "True"


def test_a_selector_that_loses_a_label_while_nothing_syncs_loses_it_on_the_cluster(
    world: World, west: Downstream, syncing: Callable[[], Syncing], eventually: Any
) -> None:
    """A Service's selector is owned as a whole: that a label of it is ours is nowhere said on the cluster."""

    def serve(**selector: str) -> None:
        ports = [{"port": 80, "targetPort": 80, "protocol": "TCP"}]
        service = {"kind": "Service", "apiVersion": "v1", "spec": {"selector": selector, "ports": ports}}
        world.put(f"services:{IDENTITY}", "shop0", "web", "web", **service)

    def selector() -> Any:
        return west.list("services").get("web", {}).get("spec", {}).get("selector")

    world.place()
    serve(app="web", track="stable")
    first = syncing()
    eventually(lambda: selector() == {"app": "web", "track": "stable"}, 60)
    first.stop()
    serve(app="web")
    syncing()
    eventually(lambda: selector() == {"app": "web"}, 60)


def test_an_autoscaler_on_the_cluster_keeps_its_replicas(
    world: World, west: Downstream, syncing: Callable[[], Syncing], eventually: Any
) -> None:
    world.place()
    web = world.deploy(replicas=1)
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    scaler = {"kind": "HorizontalPodAutoscaler", "apiVersion": "autoscaling/v2"}
    spec = {"scaleTargetRef": reference, "minReplicas": 1, "maxReplicas": 9}
    hpa = f"horizontalpodautoscalers.autoscaling:{IDENTITY}"
    world.put(hpa, "shop0", "web", "web", spec=spec, **scaler)
    syncing()
    eventually(lambda: "web" in west.names("deployments") and "web" in west.names("hpa"), 60)
    west.cluster.kubectl("scale", "deployment", "web", "-n", west.namespace, "--replicas=3")
    eventually(lambda: (world.get(web).get("status") or {}).get("availableReplicas") == 3, 60)
    world.delete(Key(hpa, "shop0", "web", "web"))
    eventually(lambda: world.get(web)["status"].get("availableReplicas") == 1, 60)


def test_kinds_that_are_bound_later_come_down(
    world: World, west: Downstream, syncing: Callable[[], Syncing], eventually: Any
) -> None:
    binding = Key("apibindings.apis.kcp.io", "shop0", "", "kubernetes")
    bound = world.get(binding)
    world.delete(binding)
    world.place()
    world.deploy()
    world.config("settings", a="b")
    syncing()
    eventually(lambda: west.names("configmaps") == {"settings"}, 60)
    assert west.names("deployments") == set()
    world.store.write(Put(binding, codec.encode(bound))).result()
    eventually(lambda: west.names("deployments") == {"web"})


WIDGETS = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
WIDGET_SCHEMA = {
    "type": "object",
    "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
}


def test_custom_kinds_of_a_supported_export_come_down(
    world: World, west: Downstream, syncing: Callable[[], Syncing], eventually: Any
) -> None:
    """First the target lacks the definition, which is told; once it is installed there, the objects come."""
    schema = {"name": "v1.widgets.example.io", "UID": "", "identityHash": "w1dg37"}
    version = {"name": "v1", "served": True, "storage": True, "schema": WIDGET_SCHEMA}
    spec = {"group": "example.io", "names": WIDGETS, "scope": "Namespaced", "versions": [version]}
    world.put("apiresourceschemas.apis.kcp.io", "infra0", schema["name"], spec=spec)
    offered = {"name": "widgets", "group": "example.io", "schema": schema["name"]}
    export = {"spec": {"resources": [offered]}, "status": {"identityHash": "w1dg37"}}
    world.put("apiexports.apis.kcp.io", "infra0", "widgets", **export)
    bound = [{"group": "example.io", "resource": "widgets", "schema": schema}]
    status = {"apiExportClusterName": "infra0", "boundResources": bound}
    world.put("apibindings.apis.kcp.io", "shop0", "widgets", status=status)
    exports = {"supportedAPIExports": [{"export": "kubernetes"}, {"export": "widgets"}]}
    world.put("synctargets.workload.kcp.io", "infra0", "west", labels={"name": "west"}, spec=exports)
    placement = world.place()
    widget = {"kind": "Widget", "apiVersion": "example.io/v1", "spec": {"size": 3}}
    world.put("widgets.example.io:w1dg37", "shop0", "big", "web", **widget)
    syncing()
    missing = "widgets.example.io web/big: the sync target serves widgets.example.io not at all"
    eventually(lambda: missing in world.condition(placement, "Synced").get("message", ""), 60)
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    definition = {**spec, "versions": [{**version, "schema": {"openAPIV3Schema": WIDGET_SCHEMA}}]}
    manifest = {**crd, "metadata": {"name": "widgets.example.io"}, "spec": definition}
    west.cluster.kubectl("apply", "-f", "-", input=json.dumps(manifest))
    try:
        sizes = ("get", "widgets", "-A", "-o", "jsonpath={.items[*].spec.size}")
        eventually(lambda: west.cluster.kubectl(*sizes, check=False) == "3", 60)
        eventually(lambda: world.condition(placement, "Synced")["status"] == "True")
    finally:
        west.cluster.kubectl("delete", "crd", "widgets.example.io")


def test_what_a_target_refuses_is_told(
    world: World, west: Downstream, syncing: Callable[[], Syncing], eventually: Any
) -> None:
    placement = world.place()
    world.config("good", a="b")
    world.put("configmaps", "shop0", "bad", "web", kind="ConfigMap", apiVersion="v1", data={"no/slash": "x"})
    syncing()
    eventually(lambda: west.names("configmaps") == {"good"}, 60)
    eventually(lambda: world.condition(placement, "Synced").get("reason") == "ApplyFailed")
    told = world.condition(placement, "Synced")
    assert told["status"] == "False"
    assert "configmaps web/bad: Invalid" in told["message"]
    world.config("bad", a="c")
    eventually(lambda: west.names("configmaps") == {"good", "bad"})
    eventually(lambda: world.condition(placement, "Synced")["status"] == "True")


def test_what_a_cluster_warns_of_comes_up_to_the_object_that_a_copy_is_of(
    world: World, west: Downstream, syncing: Callable[[], Syncing], eventually: Any
) -> None:
    """Warnings as the cluster's own programs write them, and as somebody there may who wants to be heard elsewhere."""
    world.place()
    web = world.deploy()
    syncing()
    eventually(lambda: (world.get(web).get("status") or {}).get("availableReplicas") == 1, 60)
    listed = json.loads(west.cluster.kubectl("get", "pods", "-n", west.namespace, "-o", "json"))["items"]
    [pod] = [each["metadata"] for each in listed]
    about = {"apiVersion": "v1", "kind": "Pod", "namespace": west.namespace, "name": pod["name"], "uid": pod["uid"]}

    def warn(namespace: str = west.namespace, kind: str = "Warning", reason: str = "Failed", **involved: str) -> None:
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": "e.", "namespace": namespace},
            "involvedObject": {**about, "namespace": namespace, **involved},
            "reason": reason,
            "message": f"failed to pull web:1 for {namespace} on node-7",
            "source": {"component": "kubelet", "host": "node-7"},
            "type": kind,
        }
        west.cluster.kubectl("create", "-f", "-", input=json.dumps(event))

    def comes() -> Any:
        # The watch begins a moment after the copies are there, and tells nothing of before.
        warn()
        return [each for each in world.told if each.reason == "Failed"]

    eventually(comes, 60)
    warn("default")
    warn(uid="another")
    warn(reason="CopyTaken")
    warn(kind="Normal", reason="Pulled")
    warn(reason="Last")
    eventually(lambda: [each for each in world.told if each.reason == "Last"], 60)
    assert {each.reason for each in world.told} <= {"Failed", "Last"}
    [said] = {(each.cluster, each.about.kind, each.about.name, each.message, each.warning) for each in world.told}
    text = f"on sync target root:infra:west: Pod {pod['name']}: failed to pull web:1 for web on a node"
    assert said == ("shop0", "Deployment", "web", text, True)


def test_a_dead_target_slows_nobody_and_loses_its_workloads(
    world: World, west: Downstream, east: Downstream, syncing: Callable[[], Syncing], eventually: Any
) -> None:
    placement = world.place()
    web = world.deploy()
    world.config("settings", a="b")
    syncing()
    eventually(lambda: (world.get(web).get("status") or {}).get("availableReplicas") == 1, 60)
    first = world.annotation(placement, SYNC_TARGET)
    old, new = (west, east) if first == sync_target_key("infra0", "west") else (east, west)
    assert not new.list("deployments")
    old.cluster.pause()
    try:
        eventually(lambda: world.annotation(placement, SYNC_TARGET) not in ("", first), 60)
        eventually(lambda: "web" in new.names("deployments"), 60)
        world.config("settings", a="c")
        eventually(lambda: new.list("configmaps")["settings"]["data"] == {"a": "c"}, 5)
        assert world.annotation(placement, LEAVING) == first
    finally:
        old.cluster.resume()
    eventually(lambda: world.annotation(placement, LEAVING) == "", 60)
    assert not old.list("deployments")
    eventually(lambda: not old.list("namespaces"), 60)
    assert new.names("deployments") == {"web"}


def test_a_move_keeps_the_old_copies_until_the_new_ones_are_healthy(
    world: World, west: Downstream, east: Downstream, syncing: Callable[[], Syncing], eventually: Any
) -> None:
    world.put("synctargets.workload.kcp.io", "infra0", "east", labels={"name": "east"}, spec={"unschedulable": True})
    placement = world.place()
    web = world.deploy()
    syncing()
    eventually(lambda: (world.get(web).get("status") or {}).get("availableReplicas") == 1, 60)
    assert west.names("deployments") == {"web"}
    # East can run nothing until its node may be used again.
    east.cluster.kubectl("cordon", "node-0")
    try:
        world.target("east")
        evict = {"evictAfter": "2026-01-01T00:00:00Z"}
        world.put("synctargets.workload.kcp.io", "infra0", "west", labels={"name": "west"}, spec=evict)
        eventually(lambda: "web" in east.names("deployments"), 60)
        eventually(lambda: (world.get(web)["status"].get("availableReplicas") or 0) == 0)
        assert west.names("deployments") == {"web"}
    finally:
        east.cluster.kubectl("uncordon", "node-0")
    eventually(lambda: not west.list("deployments"), 60)
    eventually(lambda: world.annotation(placement, LEAVING) == "")
    eventually(lambda: world.get(web)["status"].get("availableReplicas") == 1)


def test_a_namespace_that_loses_its_label_keeps_its_copies_until_a_commit_explains_it(
    world: World, west: Downstream, syncing: Callable[[], Syncing], eventually: Any
) -> None:
    placement = world.place()
    world.config("settings", a="b")
    made = syncing()
    eventually(lambda: west.names("configmaps") == {"settings"}, 60)
    world.put("namespaces", "shop0", "web", labels={}, kind="Namespace", apiVersion="v1")
    eventually(lambda: made.bindings.roles("shop0", "web") == {})
    target = Key("synctargets.workload.kcp.io", "infra0", "", "west")
    eventually(lambda: "configmaps web/settings" in world.condition(target, "InventoryExplained").get("message", ""))
    assert west.names("configmaps") == {"settings"}
    world.taken = True
    made = syncing()
    eventually(lambda: not west.list("namespaces"), 60)
    world.put("namespaces", "shop0", "web", labels={"app": "shop"}, kind="Namespace", apiVersion="v1")
    eventually(lambda: west.names("configmaps") == {"settings"}, 60)
    eventually(lambda: world.condition(target, "InventoryExplained").get("status") == "True")
    world.delete(placement)
    eventually(lambda: not west.list("namespaces"), 60)


def test_a_target_that_lets_us_in_no_more_keeps_what_it_runs(
    world: World, west: Downstream, east: Downstream, syncing: Callable[[], Syncing], eventually: Any
) -> None:
    """Everybody may read /version there; what counts is whether we may work."""
    world.put("synctargets.workload.kcp.io", "infra0", "east", labels={"name": "east"}, spec={"unschedulable": True})
    placement = world.place()
    world.config("settings", a="b")
    syncing()
    eventually(lambda: west.names("configmaps") == {"settings"}, 60)
    world.target("east")
    target = Key("synctargets.workload.kcp.io", "infra0", "", "west")
    good = west.cluster.kubeconfig.decode()
    token = west.cluster.kubectl("create", "token", "default").strip()
    refused = {
        "Unauthorized": good.replace(TOKEN, "wrong"),
        "Forbidden": good.replace(TOKEN, token),
        "KubeconfigRefused": good.replace(f'"token": "{TOKEN}"', '"exec": {"command": "sh"}'),
    }
    for reason, content in refused.items():
        assert content != good
        world.kubeconfigs["west"] = content.encode()
        told = eventually(lambda reason=reason: world.condition(target, "Ready").get("reason") == reason, 60)
        assert told
    limit = QUICK.targets.threshold + QUICK.targets.tolerance + 0.5
    since = time.monotonic()
    eventually(lambda: time.monotonic() - since > limit)
    assert world.condition(target, "Ready")["status"] == "Unknown"
    assert world.annotation(placement, SYNC_TARGET) == sync_target_key("infra0", "west")
    assert west.names("configmaps") == {"settings"}
    del world.kubeconfigs["west"]
    eventually(lambda: world.condition(target, "Ready")["status"] == "True", 60)
    world.config("settings", a="c")
    eventually(lambda: west.list("configmaps")["settings"]["data"] == {"a": "c"})
    assert not east.list("namespaces")


def test_a_label_edited_on_somebodys_target_does_not_delete_a_volume(
    world: World, west: Downstream, east: Downstream, syncing: Callable[[], Syncing], eventually: Any
) -> None:
    world.put("synctargets.workload.kcp.io", "infra0", "east", labels={"name": "east"}, spec={"unschedulable": True})
    placement = world.place()
    size = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "spec": size}
    world.put(f"persistentvolumeclaims:{IDENTITY}", "shop0", "data", "web", **claim)
    syncing()
    eventually(lambda: west.names("pvc") == {"data"}, 60)
    uid = west.list("pvc")["data"]["metadata"]["uid"]
    world.target("east")
    east_only = {"instanceSelector": {"matchLabels": {"name": "east"}}}
    world.put("locations.scheduling.kcp.io", "infra0", "any", spec=east_only)
    eventually(lambda: world.condition(placement, "Scheduled").get("reason") == "HoldsState", 60)
    # Something that has to go down, so that the rest has certainly been looked at.
    world.config("settings", a="b")
    eventually(lambda: west.names("configmaps") == {"settings"})
    assert west.list("pvc")["data"]["metadata"]["uid"] == uid
    assert not east.list("namespaces")
    # The command that the condition prints.
    told = world.condition(placement, "Scheduled")["message"]
    annotation = told.partition("kubectl annotate placement prod ")[2].partition("`")[0]
    assert annotation == "treeplane.dev/may-leave=root:infra:west"
    may = world.get(placement)
    may["metadata"]["annotations"]["treeplane.dev/may-leave"] = "root:infra:west"
    world.store.write(Put(placement, codec.encode(may))).result()
    eventually(lambda: east.names("pvc") == {"data"} and not west.list("namespaces"), 60)
