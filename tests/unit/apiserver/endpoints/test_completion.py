"""What new objects get of their cluster, as a kube-apiserver 1.36 with its default admission plugins gives it."""

from __future__ import annotations

from typing import Any

import pytest

BASE = "/targets/root:edge"
NS = f"{BASE}/api/v1/namespaces/default"
PODS, CLAIMS = f"{NS}/pods", f"{NS}/persistentvolumeclaims"
INGRESSES = f"{BASE}/apis/networking.k8s.io/v1/namespaces/default/ingresses"
CLASSES = {
    "priority": f"{BASE}/apis/scheduling.k8s.io/v1/priorityclasses",
    "runtime": f"{BASE}/apis/node.k8s.io/v1/runtimeclasses",
    "storage": f"{BASE}/apis/storage.k8s.io/v1/storageclasses",
    "ingress": f"{BASE}/apis/networking.k8s.io/v1/ingressclasses",
}
MERGE = "application/merge-patch+json"
AWAY = [
    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
    {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
]


@pytest.fixture
def make(api: Any, run: Any) -> Any:
    def post(path: str, name: str = "x", **content: Any) -> Any:
        metadata = {"name": name, **content.pop("metadata", {})}
        return run(api.call("POST", CLASSES.get(path, path), {"metadata": metadata, **content}))

    return post


@pytest.fixture
def pod(make: Any) -> Any:
    return lambda name="p", **spec: make(PODS, name, spec={"containers": [{"name": "c", "image": "x"}], **spec})


def test_a_pod_without_a_class(pod: Any) -> None:
    made = pod().json
    assert (made["spec"]["priority"], made["spec"]["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    assert "priorityClassName" not in made["spec"]
    assert made["spec"]["tolerations"] == AWAY
    owned = str(made["metadata"]["managedFields"])
    assert "f:priority" not in owned
    assert "f:tolerations" not in owned


def test_the_class_says_the_priority(make: Any, pod: Any) -> None:
    assert make("priority", "low", value=10, preemptionPolicy="Never").status == 201
    spec = pod(priorityClassName="low").json["spec"]
    assert (spec["priority"], spec["preemptionPolicy"], spec["priorityClassName"]) == (10, "Never", "low")
    assert pod("q", priorityClassName="system-node-critical").json["spec"]["priority"] == 2000001000
    assert pod("r", priorityClassName="low", priority=10, preemptionPolicy="Never").status == 201


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"priorityClassName": "nope"}, "no PriorityClass with name nope was found"),
        ({"priority": 5}, "the integer value of priority (5) must not be provided in pod spec; priority admission "
                          "controller computed 0 from the given PriorityClass name"),
        ({"preemptionPolicy": "Never"}, "the string value of PreemptionPolicy (Never) must not be provided in pod "
                                        "spec; priority admission controller computed PreemptLowerPriority from the "
                                        "given PriorityClass name"),
        ({"runtimeClassName": "nope"}, 'pod rejected: RuntimeClass "nope" not found'),
        ({"overhead": {"cpu": "1"}},
         "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"),
    ],
)  # fmt: skip
def test_pods_that_are_refused(pod: Any, spec: Any, text: str) -> None:
    reply = pod(**spec)
    assert (reply.status, reply.message) == (403, f'pods "p" is forbidden: {text}')


def test_one_class_may_be_the_default(make: Any, pod: Any, api: Any, run: Any) -> None:
    make("priority", "usual", value=7, globalDefault=True)
    spec = pod().json["spec"]
    assert (spec["priorityClassName"], spec["priority"]) == ("usual", 7)
    again = make("priority", "second", value=1, globalDefault=True)
    assert (again.status, again.message) == (
        403,
        'priorityclasses.scheduling.k8s.io "second" is forbidden: PriorityClass usual is already marked as default. '
        "Only one default can exist",
    )
    assert make("priority", "second", value=1).status == 201
    change = {"globalDefault": True}
    assert run(api.call("PATCH", f"{CLASSES['priority']}/second", change, kind=MERGE)).status == 403
    assert run(api.call("PATCH", f"{CLASSES['priority']}/usual", {"description": "d"}, kind=MERGE)).status == 200


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ([{"key": "a", "operator": "Exists"}], [{"key": "a", "operator": "Exists"}, *AWAY]),
        ([{"operator": "Exists"}], [{"operator": "Exists"}]),
        ([{"key": AWAY[0]["key"], "operator": "Exists"}], [{"key": AWAY[0]["key"], "operator": "Exists"}, AWAY[1]]),
        ([{"operator": "Exists", "effect": "NoSchedule"}], [{"operator": "Exists", "effect": "NoSchedule"}, *AWAY]),
    ],
)
def test_tolerations(pod: Any, given: Any, made: Any) -> None:
    assert pod(tolerations=given).json["spec"]["tolerations"] == made


def test_who_updates_a_pod_need_not_know(api: Any, run: Any, pod: Any) -> None:
    made = pod().json
    containers = [{**made["spec"]["containers"][0], "image": "y"}]
    spec = {k: v for k, v in made["spec"].items() if k not in ("priority", "preemptionPolicy", "tolerations")}
    body = {"metadata": {"name": "p"}, "spec": {**spec, "containers": containers}}
    put = run(api.call("PUT", f"{PODS}/p", body))
    assert put.status == 200, put.message
    assert put.json["spec"]["tolerations"] == AWAY
    assert put.json["spec"]["priority"] == 0


def test_runtime_classes(make: Any, pod: Any) -> None:
    toleration = {"key": "k", "operator": "Exists"}
    scheduling = {"nodeSelector": {"a": "b"}, "tolerations": [toleration]}
    make("runtime", "rc", handler="h", overhead={"podFixed": {"cpu": "10m"}}, scheduling=scheduling)
    spec = pod(runtimeClassName="rc", nodeSelector={"c": "d"}, overhead={"cpu": "0.01"}).json["spec"]
    assert spec["overhead"] == {"cpu": "10m"}
    assert spec["nodeSelector"] == {"a": "b", "c": "d"}
    assert spec["tolerations"] == [*AWAY, toleration]
    assert "doesn't match RuntimeClass's defined Overhead" in pod(
        "q", runtimeClassName="rc", overhead={"cpu": "1"}
    ).message  # fmt: skip
    assert pod("q", runtimeClassName="rc", nodeSelector={"a": "z"}).message == (
        'pods "q" is forbidden: conflict: runtimeClass.scheduling.nodeSelector[a] = b; pod.spec.nodeSelector[a] = z'
    )


def test_an_account_that_is_still_to_come(pod: Any) -> None:
    """The controller that makes a namespace's default account may be a moment late."""
    spec = pod().json["spec"]
    assert spec["serviceAccountName"] == "default"
    assert spec["volumes"][0]["name"].startswith("kube-api-access-")


def claim(**spec: Any) -> Any:
    return {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}


def test_storage_is_protected(make: Any) -> None:
    assert make(CLAIMS, spec=claim()).json["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    volume = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    made = make(f"{BASE}/api/v1/persistentvolumes", spec=volume).json
    assert made["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]
    assert made["status"]["lastPhaseTransitionTime"]
    path = f"{BASE}/apis/storage.k8s.io/v1/volumeattributesclasses"
    made = make(path, driverName="d", parameters={"a": "b"}).json
    assert made["metadata"]["finalizers"] == ["kubernetes.io/vac-protection"]
    assert "f:finalizers" not in str(made["metadata"]["managedFields"])


def test_the_newest_default_class_of_storage(make: Any, api: Any) -> None:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    assert "storageClassName" not in make(CLAIMS, "a", spec=claim()).json["spec"]
    for name, year in (("old", 2020), ("new", 2024), ("also", 2024)):
        made = api.manifest("storage.k8s.io/v1 StorageClass", name, cluster="target", annotations=annotations)
        made["metadata"]["creationTimestamp"] = f"{year}-01-01T00:00:00Z"
        api.put(made, store=api.target)
    assert make(CLAIMS, "b", spec=claim()).json["spec"]["storageClassName"] == "also"
    assert make(CLAIMS, "c", spec=claim(storageClassName="")).json["spec"]["storageClassName"] == ""
    old = {"annotations": {"volume.beta.kubernetes.io/storage-class": "old"}}
    assert "storageClassName" not in make(CLAIMS, "d", metadata=old, spec=claim()).json["spec"]


def test_the_default_class_of_ingresses(make: Any) -> None:
    annotations = {"ingressclass.kubernetes.io/is-default-class": "true"}
    make("ingress", "i", metadata={"annotations": annotations}, spec={"controller": "a/b"})
    spec = {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}
    assert make(INGRESSES, "a", spec=spec).json["spec"]["ingressClassName"] == "i"
    old = {"annotations": {"kubernetes.io/ingress.class": "q"}}
    assert "ingressClassName" not in make(INGRESSES, "b", metadata=old, spec=spec).json["spec"]


def test_a_claim_grows_where_its_class_lets_it(make: Any, api: Any, run: Any) -> None:
    make("storage", "grows", provisioner="x/y", allowVolumeExpansion=True)
    make("storage", "stays", provisioner="x/y")
    for name, status in (("grows", 200), ("stays", 403)):
        make(CLAIMS, name, spec=claim(storageClassName=name))
        run(api.call("PATCH", f"{CLAIMS}/{name}/status", {"status": {"phase": "Bound"}}, kind=MERGE))
        more = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
        reply = run(api.call("PATCH", f"{CLAIMS}/{name}", more, kind=MERGE))
        assert reply.status == status, reply.message
    assert reply.message == (
        'persistentvolumeclaims "stays" is forbidden: only dynamically provisioned pvc can be resized and the '
        "storageclass that provisions the pvc must support resize"
    )


def test_a_new_node_is_not_ready(make: Any) -> None:
    nodes, taint = f"{BASE}/api/v1/nodes", {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    assert make(nodes, "a").json["spec"]["taints"] == [taint]
    own = {"key": "a", "effect": "NoSchedule"}
    assert make(nodes, "b", spec={"taints": [own]}).json["spec"]["taints"] == [own, taint]
    assert make(nodes, "c", spec={"taints": [taint]}).json["spec"]["taints"] == [taint]


def test_a_pod_says_where_its_node_stands(make: Any, pod: Any, api: Any, run: Any) -> None:
    zone, region = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
    make(f"{BASE}/api/v1/nodes", "n", metadata={"labels": {zone: "z1", region: "r1", "more": "x"}})
    assert pod("there", nodeName="n").json["metadata"]["labels"] == {zone: "z1", region: "r1"}
    assert "labels" not in pod("nowhere", nodeName="m").json["metadata"]
    pod("free")
    body = {"metadata": {"name": "free", "labels": {zone: "mine"}}, "target": {"kind": "Node", "name": "n"}}
    assert run(api.call("POST", f"{PODS}/free/binding", body)).status == 201
    assert run(api.get(f"{PODS}/free")).json["metadata"]["labels"] == {zone: "z1", region: "r1"}
    pod("old")
    body = {"metadata": {"name": "old"}, "target": {"kind": "Node", "name": "n"}}
    assert run(api.call("POST", f"{NS}/bindings", body)).status == 201
    assert "labels" not in run(api.get(f"{PODS}/old")).json["metadata"]


@pytest.mark.parametrize("spec", ["text", {"tolerations": "x"}, {"priorityClassName": 3}, {"overhead": "x"}])
def test_pods_that_are_none_are_named_by_the_checks(api: Any, run: Any, spec: Any) -> None:
    kind = "application/apply-patch+yaml"
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    reply = run(api.call("PATCH", f"{PODS}/p?fieldManager=m", body, kind=kind))
    assert 400 <= reply.status <= 500
    assert run(api.call("POST", PODS, body)).status in (400, 403, 422)
