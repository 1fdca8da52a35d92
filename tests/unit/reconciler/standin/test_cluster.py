"""The target as a cluster: first namespaces, deleted ones, definitions, claims, what is left alone; the loop itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apiserver.model.keys import Key
from apiserver.storage.protocol import Put

Object = dict[str, Any]
GADGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.x.io"},
    "spec": {
        "group": "x.io",
        "names": {"plural": "gadgets", "kind": "Gadget"},
        "scope": "Namespaced",
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}


def namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def test_a_fresh_target_starts_as_any_cluster_does(target: Any) -> None:
    found = {n["metadata"]["name"]: n["status"]["phase"] for n in target.list("namespaces", None)}
    assert found == dict.fromkeys(("default", "kube-node-lease", "kube-public", "kube-system"), "Active")
    assert target.get("services", "kubernetes", "default")["spec"]["clusterIP"] == "10.0.0.1"
    settled = target.quiet()
    target.restart()
    assert target.quiet() == settled


def test_a_deleted_namespace_takes_its_content_along(
    target: Any, template: Callable[..., Object], eventually: Any
) -> None:
    target.create(namespace("shop"))
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template()}
    target.create({"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec}, "shop", "web")
    held = {"name": "held", "finalizers": ["x.io/hold"]}
    target.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": held}, "shop")
    eventually(lambda: len(target.names("pods", "shop")) == 2)
    target.delete("", "v1", "namespaces", "shop", "")
    eventually(lambda: not target.names("pods", "shop") and not target.names("deployments.apps", "shop"))
    target.quiet()
    assert target.get("namespaces", "shop", "")["status"]["phase"] == "Terminating"

    def release(obj: Object) -> Object:
        obj["metadata"]["finalizers"] = []
        return obj

    target.objects.update(Key("configmaps", "target", "shop", "held"), release)
    eventually(lambda: target.get("namespaces", "shop", "") is None)
    target.quiet()
    target.create(namespace("shop"))
    target.create(
        {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "a", "image": "b"}]}}, "shop", "p"
    )
    eventually(lambda: target.status("pods", "p", "shop").get("phase") == "Running")


def test_objects_of_a_definition_are_collected(target: Any, eventually: Any) -> None:
    target.create(GADGETS)
    settled = target.quiet()
    target.restart()
    assert target.quiet() == settled
    owner = target.create({"apiVersion": "x.io/v1", "kind": "Gadget"}, name="g")
    reference = {"apiVersion": "x.io/v1", "kind": "Gadget", "name": "g", "uid": owner["metadata"]["uid"]}
    metadata = {"name": "mine", "ownerReferences": [reference]}
    target.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    target.quiet()
    assert target.names("configmaps") == ["mine"]
    target.delete("x.io", "v1", "gadgets", "g")
    eventually(lambda: not target.names("configmaps"))


def test_a_claim_is_bound_and_a_load_balancer_is_not(target: Any, eventually: Any) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    target.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": claim}, name="disk")
    service = {"type": "LoadBalancer", "ports": [{"port": 80}]}
    target.create({"apiVersion": "v1", "kind": "Service", "spec": service}, name="web")
    eventually(lambda: target.status("persistentvolumeclaims", "disk").get("phase") == "Bound")
    target.quiet()
    assert "ingress" not in (target.status("services", "web").get("loadBalancer") or {})


def test_what_happened_while_it_was_away_is_made_good(
    target: Any, template: Callable[..., Object], eventually: Any
) -> None:
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template()}
    target.create({"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec}, name="web")
    eventually(lambda: target.names("pods"))
    target.quiet()
    target.standin.stop()
    target.delete("apps", "v1", "deployments", "web")
    target.store.compact(0)
    target.restart()
    eventually(lambda: not target.names("pods") and not target.names("replicasets.apps"))


def test_it_looks_anew_where_the_log_was_cut(target: Any, eventually: Any) -> None:
    target.quiet()
    pod = b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"default"},"spec":{"containers":[]}}'
    target.store.fill(Put(Key("pods", "target", "default", "p"), pod)).result()
    eventually(lambda: target.status("pods", "p").get("phase") == "Running")


def test_what_fails_is_tried_again_and_hinders_nobody(target: Any, eventually: Any) -> None:
    target.store.write(
        Put(Key("jobs.batch", "target", "default", "broken"), b'{"metadata":{"name":"broken"}}')
    ).result()
    target.create({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "a", "image": "b"}]}}, name="p")
    eventually(lambda: target.status("pods", "p").get("phase") == "Running")
