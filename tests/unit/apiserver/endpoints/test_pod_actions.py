"""Bindings, evictions, ephemeral containers and resizing of Pods: texts and codes are those of kube-apiserver 1.36."""

from typing import Any

import pytest

BASE = "/targets/root:edge/api/v1/namespaces/default"
PODS = f"{BASE}/pods"
STRATEGIC, MERGE = "application/strategic-merge-patch+json", "application/merge-patch+json"
READY = [{"type": "Ready", "status": "True"}]


@pytest.fixture
def pod(api: Any, run: Any) -> Any:
    def make(name: str = "p", *, phase: str = "Pending", ready: bool = True, **spec: Any) -> Any:
        body = {
            "metadata": {"name": name, "labels": {"app": "a"}},
            "spec": {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}], **spec},
        }
        made = run(api.call("POST", PODS, body)).json
        if phase != "Pending":
            status = {"phase": phase, "conditions": READY if ready else []}
            made = run(api.call("PATCH", f"{PODS}/{name}/status", {"status": status}, kind=MERGE)).json
        return made

    return make


@pytest.fixture
def budget(api: Any) -> Any:
    def put(name: str = "b", labels: Any = None, **status: Any) -> None:
        made = api.manifest("policy/v1 PodDisruptionBudget", name, "default", "target",
                            spec={"selector": {"matchLabels": labels or {"app": "a"}}}, status=status)  # fmt: skip
        made["metadata"]["generation"] = 1
        api.put(made, store=api.target)

    return put


def binding(name: str, node: str = "n1", **metadata: Any) -> Any:
    return {"metadata": {"name": name, **metadata}, "target": {"kind": "Node", "name": node}}


def test_a_pod_is_bound_once(api: Any, run: Any, pod: Any) -> None:
    before = pod()
    body = binding("p", annotations={"k": "v"}, labels={"zone": "z"})
    done = run(api.call("POST", f"{PODS}/p/binding", body))
    assert (done.status, done.json["status"], done.json["code"]) == (201, "Success", 201)
    bound = run(api.get(f"{PODS}/p")).json
    assert bound["spec"] == {**before["spec"], "nodeName": "n1"}
    assert bound["metadata"]["labels"] == {"app": "a", "zone": "z"}
    assert bound["metadata"]["annotations"] == {"k": "v"}
    for field in ("generation", "managedFields"):
        assert bound["metadata"][field] == before["metadata"][field]
    [scheduled] = bound["status"]["conditions"]
    assert (scheduled["type"], scheduled["status"]) == ("PodScheduled", "True")
    again = run(api.call("POST", f"{PODS}/p/binding", body))
    assert (again.status, again.json["details"]) == (409, {"name": "p", "kind": "pods/binding"})
    assert again.message == (
        'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n1"'
    )


def test_the_older_way_to_bind(api: Any, run: Any, pod: Any) -> None:
    pod()
    assert run(api.call("POST", f"{BASE}/bindings", binding("p", "n2"))).status == 201
    assert run(api.get(f"{PODS}/p")).json["spec"]["nodeName"] == "n2"
    assert run(api.get(f"{BASE}/bindings")).status == 405
    assert run(api.call("POST", "/targets/root:edge/api/v1/bindings", binding("p"))).status == 404


def test_bindings_that_cannot_be(api: Any, run: Any, pod: Any) -> None:
    made = pod()
    pod("gated", schedulingGates=[{"name": "g"}])

    def bind(name: str, body: Any, query: str = "") -> Any:
        return run(api.call("POST", f"{PODS}/{name}/binding{query}", body))

    assert bind("p", binding("other")).message == "name in URL does not match name in Binding object"
    assert bind("absent", binding("absent")).status == 404
    wrong = bind("p", {"metadata": {"name": "p"}, "target": {"kind": "Nod"}})
    assert [c["field"] for c in wrong.json["details"]["causes"]] == ["target.kind", "target.name"]
    stale = bind("p", binding("p", uid="x"))
    assert stale.status == 409
    assert f"UID in precondition: x, UID in object meta: {made['metadata']['uid']}" in stale.message
    assert bind("p", binding("p", resourceVersion="1")).status == 409
    assert "has non-empty .spec.schedulingGates" in bind("gated", binding("gated")).message
    revision = api.target.revision()
    assert bind("p", binding("p"), "?dryRun=All").status == 201
    assert api.target.revision() == revision
    assert run(api.get(f"{PODS}/p/binding")).status == 405


def test_only_binding_places_a_pod(api: Any, run: Any, pod: Any) -> None:
    pod()
    refused = run(api.call("PATCH", f"{PODS}/p", {"spec": {"nodeName": "n"}}, kind=MERGE))
    assert (refused.status, refused.json["details"]["causes"][0]["field"]) == (422, "spec")


def evict(api: Any, run: Any, name: str = "p", query: str = "", **options: Any) -> Any:
    body = {"metadata": {"name": name}, **({"deleteOptions": options} if options else {})}
    return run(api.call("POST", f"{PODS}/{name}/eviction{query}", body))


@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
def test_who_does_not_run_goes_whatever_budgets_say(api: Any, run: Any, pod: Any, budget: Any, phase: str) -> None:
    pod(phase=phase)
    budget(disruptionsAllowed=0)
    assert evict(api, run).json["status"] == "Success"
    assert run(api.get(f"{PODS}/p")).status == 404


def test_a_budget_that_is_used_up(api: Any, run: Any, pod: Any, budget: Any) -> None:
    pod(phase="Running")
    budget(observedGeneration=1, disruptionsAllowed=0, currentHealthy=1, desiredHealthy=1)
    refused = evict(api, run)
    assert (refused.status, refused.json["reason"]) == (429, "TooManyRequests")
    assert refused.message == "Cannot evict pod as it would violate the pod's disruption budget."
    text = "The disruption budget b needs 1 healthy pods and has 1 currently"
    assert refused.json["details"] == {"causes": [{"reason": "DisruptionBudget", "message": text}]}
    assert "retry-after" not in refused.headers
    assert run(api.get(f"{PODS}/p")).status == 200


def test_a_budget_that_nobody_has_looked_at(api: Any, run: Any, pod: Any, budget: Any) -> None:
    pod(phase="Running")
    budget(disruptionsAllowed=5)
    refused = evict(api, run)
    assert (refused.status, refused.headers["retry-after"]) == (429, "10")
    assert "is still being processed by the server" in refused.json["details"]["causes"][0]["message"]


def test_an_eviction_is_counted(api: Any, run: Any, pod: Any, budget: Any) -> None:
    pod(phase="Running", nodeName="n")
    at = "/targets/root:edge/apis/policy/v1/namespaces/default/poddisruptionbudgets/b"
    budget(observedGeneration=1, disruptionsAllowed=1, currentHealthy=2, desiredHealthy=1)
    revision = api.target.revision()
    assert evict(api, run, query="?dryRun=All").status == 201
    assert evict(api, run, dryRun=["All"]).status == 201
    assert api.target.revision() == revision
    assert evict(api, run, gracePeriodSeconds=7).status == 201
    status = run(api.get(at)).json["status"]
    assert (status["disruptionsAllowed"], list(status["disruptedPods"])) == (0, ["p"])
    [condition] = status["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "DisruptionAllowed", "False", "InsufficientPods",
    )  # fmt: skip
    gone = run(api.get(f"{PODS}/p")).json
    assert gone["metadata"]["deletionGracePeriodSeconds"] == 7
    target = gone["status"]["conditions"][-1]
    assert (target["type"], target["status"], target["reason"], target["message"]) == (
        "DisruptionTarget", "True", "EvictionByEvictionAPI", "Eviction API: evicting",
    )  # fmt: skip


def test_one_that_is_not_ready_may_go_uncounted(api: Any, run: Any, pod: Any, budget: Any) -> None:
    pod(phase="Running", ready=False)
    budget(observedGeneration=1, disruptionsAllowed=0, currentHealthy=1, desiredHealthy=1)
    assert evict(api, run).status == 201
    assert run(api.get(f"{PODS}/p")).status == 404


def test_preconditions_of_an_eviction(api: Any, run: Any, pod: Any) -> None:
    made = pod(phase="Running")
    refused = evict(api, run, preconditions={"uid": "x"})
    assert refused.status == 409
    assert refused.message == (
        'Operation cannot be fulfilled on Pod "p": the UID in the precondition (x) does not match the UID in record '
        f"({made['metadata']['uid']}). The object might have been deleted and then recreated"
    )
    assert evict(api, run, preconditions={"resourceVersion": "1"}).status == 409
    assert "conditions" not in str(run(api.get(f"{PODS}/p")).json["status"]["conditions"][1:])
    assert evict(api, run, preconditions={"resourceVersion": made["metadata"]["resourceVersion"]}).status == 201


def test_evictions_that_cannot_be(api: Any, run: Any, pod: Any, budget: Any) -> None:
    pod(phase="Running")
    assert evict(api, run, "absent").status == 404
    wrong = run(api.call("POST", f"{PODS}/p/eviction", {"metadata": {"name": "q"}}))
    assert (wrong.status, wrong.message) == (400, "name in URL does not match name in Eviction object")
    assert run(api.call("POST", f"{PODS}/p/eviction", {"kind": "Pod", "apiVersion": "v1"})).status == 400
    assert run(api.call("POST", f"{PODS}/p/eviction", {"metadata": {"name": "p"}, "deleteOptions": 3})).status == 400
    assert run(api.get(f"{PODS}/p/eviction")).status == 405
    old = {"kind": "Eviction", "apiVersion": "policy/v1beta1", "metadata": {"name": "p"}}
    assert run(api.call("POST", f"{PODS}/p/eviction?dryRun=All", old)).status == 201
    budget("b")
    budget("c")
    assert "more than one PodDisruptionBudget" in evict(api, run).message
    assert run(api.get(f"{PODS}/p")).status == 200


def test_bodies_of_actions_are_read_as_strictly_as_others(api: Any, run: Any, pod: Any) -> None:
    pod()
    body = {**binding("p"), "foo": 1}
    refused = run(api.call("POST", f"{PODS}/p/binding?fieldValidation=Strict", body))
    assert (refused.status, refused.message) == (
        400, 'Binding in version "v1" cannot be handled as a Binding: strict decoding error: unknown field "foo"',
    )  # fmt: skip
    elsewhere = run(api.call("POST", f"{PODS}/p/eviction", {"metadata": {"name": "p", "namespace": "z"}}))
    assert "the namespace of the provided object does not match" in elsewhere.message
    assert run(api.call("POST", f"{PODS}/p/binding", {**body, "target": "n"})).status == 400
    warned = run(api.call("POST", f"{PODS}/p/binding", body))
    assert (warned.status, 'unknown field \\"foo\\"' in warned.headers["warning"]) == (201, True)


def test_a_gated_pod_says_that_it_waits(api: Any, run: Any, pod: Any) -> None:
    made = pod(schedulingGates=[{"name": "g"}])
    [condition] = made["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "SchedulingGated")


def test_ephemeral_containers_are_added_and_stay(api: Any, run: Any, pod: Any) -> None:
    pod()
    path = f"{PODS}/p/ephemeralcontainers"

    def patch(*containers: Any, **more: Any) -> Any:
        return run(api.call("PATCH", path, {"spec": {"ephemeralContainers": [*containers], **more}}, kind=STRATEGIC))

    added = patch({"name": "e", "image": "busybox", "targetContainerName": "c"}, hostname="h")
    assert added.status == 200
    made = added.json
    assert made["spec"]["ephemeralContainers"][0]["imagePullPolicy"] == "Always"
    assert "hostname" not in made["spec"]
    assert made["metadata"]["generation"] == 2
    assert made["metadata"]["managedFields"][-1]["subresource"] == "ephemeralcontainers"
    assert run(api.get(path)).json == made
    changed = patch({"name": "e", "image": "other"})
    assert (changed.status, 'existing ephemeral containers "e" may not be changed' in changed.message) == (422, True)
    body = {**made, "spec": {**made["spec"], "ephemeralContainers": []}}
    removed = run(api.call("PUT", path, body))
    assert 'existing ephemeral containers "e" may not be removed' in removed.message
    wrong = patch({"name": "c", "image": "x"}, {"name": "f", "image": "x", "targetContainerName": "zz", "ports": [
        {"containerPort": 1}], "resources": {"requests": {"cpu": "1"}}})  # fmt: skip
    texts = [f"{c['field'].partition('.')[2]}: {c['message']}" for c in wrong.json["details"]["causes"]]
    for text in ('Duplicate value: "c"', 'targetContainerName: Not found: "zz"', "ports: Forbidden: cannot be set for"):
        assert any(text in found for found in texts), texts


def test_a_new_pod_has_no_ephemeral_containers(api: Any, run: Any) -> None:
    body = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}],
            "ephemeralContainers": [{"name": "e", "image": "x"}]}}  # fmt: skip
    reply = run(api.call("POST", PODS, body))
    assert reply.message == 'Pod "p" is invalid: spec.ephemeralContainers: Forbidden: cannot be set on create'


def test_resizing_changes_cpu_and_memory_alone(api: Any, run: Any, pod: Any) -> None:
    pod(initContainers=[{"name": "i", "image": "x"}])

    def resize(container: Any, **more: Any) -> Any:
        body = {"spec": {"containers": [{"name": "c", **container}], **more}}
        return run(api.call("PATCH", f"{PODS}/p/resize", body, kind=STRATEGIC))

    made = resize({"image": "new", "resources": {"requests": {"cpu": "200m"}, "limits": {"cpu": "300m"}}}).json
    container = made["spec"]["containers"][0]
    assert container["image"] == "x"
    assert container["resources"] == {"limits": {"cpu": "300m"}, "requests": {"cpu": "200m"}}
    assert made["metadata"]["generation"] == 2
    for wrong, text in (
        ({"resources": {"limits": {"ephemeral-storage": "1Gi"}}}, "only cpu and memory resources are mutable"),
        ({"resources": {"limits": {"cpu": None}}}, "resource limits cannot be removed"),
        ({"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]}, "only cpu and memory"),
    ):
        refused = resize(wrong)
        assert (refused.status, text in refused.message) == (422, True), refused.message
    body = {"spec": {"containers": [{"name": "d", "image": "x"}]}}
    more = run(api.call("PATCH", f"{PODS}/p/resize", body, kind=STRATEGIC))
    assert "spec.containers: Forbidden: containers may not be added or removed on resize" in more.message


def test_resizing_keeps_the_class_of_service(api: Any, run: Any) -> None:
    full = {"cpu": "1", "memory": "1Gi"}
    body = {"metadata": {"name": "g"}, "spec": {"containers": [{"name": "c", "image": "x", "resources": {
        "requests": full, "limits": full}}]}}  # fmt: skip
    assert run(api.call("POST", PODS, body)).json["status"]["qosClass"] == "Guaranteed"
    less = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "500m"}}}]}}
    refused = run(api.call("PATCH", f"{PODS}/g/resize", less, kind=STRATEGIC))
    assert refused.message == (
        'Pod "g" is invalid: spec: Invalid value: "Guaranteed": Pod QOS Class may not change as a result of resizing'
    )
