"""Workloads become ready, change, shrink and go, and then nothing more is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from apiserver.model import conditions
from apiserver.model.kinds import GroupResource
from reconciler.plan.health import healthy

Object = dict[str, Any]
DEPLOYMENTS, SETS, PODS = "deployments.apps", "replicasets.apps", "pods"
MATCH = {"matchLabels": {"app": "web"}}


def deployment(template: Object, replicas: int = 2, **spec: Any) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "spec": {"replicas": replicas, "selector": MATCH, "template": template, **spec},
    }


def ready(target: Any, name: str, count: int) -> bool:
    live = target.get(DEPLOYMENTS, name)
    return (
        healthy(GroupResource("apps", "deployments"), live)
        and live["status"].get("readyReplicas", 0) == live["status"].get("replicas", 0) == count
    )


@pytest.fixture
def web(target: Any, template: Callable[..., Object], eventually: Callable[..., Any]) -> Any:
    target.create(deployment(template()), name="web")
    eventually(lambda: ready(target, "web", 2))
    return target


def test_a_deployment_becomes_available(web: Any) -> None:
    live = web.get(DEPLOYMENTS, "web")
    [owned] = web.list(SETS)
    status = live["status"]
    assert {k: v for k, v in status.items() if k != "conditions"} == {
        "observedGeneration": 1,
        "replicas": 2,
        "updatedReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
    }
    found = {c["type"]: (c["status"], c["reason"], c["message"]) for c in status["conditions"]}
    assert found == {
        "Available": ("True", "MinimumReplicasAvailable", "Deployment has minimum availability."),
        "Progressing": (
            "True",
            "NewReplicaSetAvailable",
            f'ReplicaSet "{owned["metadata"]["name"]}" has successfully progressed.',
        ),
    }
    assert live["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "1"
    assert live["metadata"]["generation"] == 1


def test_its_pods_are_as_kubernetes_makes_them(web: Any) -> None:
    [owned] = web.list(SETS)
    name = owned["metadata"]["name"]
    letters = name.removeprefix("web-")
    assert owned["metadata"]["labels"] == {"app": "web", "pod-template-hash": letters}
    assert owned["spec"]["selector"] == {"matchLabels": {"app": "web", "pod-template-hash": letters}}
    assert owned["status"] == {
        "replicas": 2, "fullyLabeledReplicas": 2, "readyReplicas": 2, "availableReplicas": 2, "observedGeneration": 1
    }  # fmt: skip
    pods = web.list(PODS)
    assert len(pods) == 2
    for pod in pods:
        assert pod["metadata"]["name"].startswith(name + "-")
        assert pod["metadata"]["labels"] == {"app": "web", "pod-template-hash": letters}
        assert pod["metadata"]["annotations"]["note"] == "x"
        [reference] = pod["metadata"]["ownerReferences"]
        assert reference == {
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": owned["metadata"]["uid"],
            "controller": True, "blockOwnerDeletion": True,
        }  # fmt: skip
        assert pod["status"]["phase"] == "Running"
        assert conditions.is_true(pod["status"]["conditions"], "Ready")
        assert pod["status"]["containerStatuses"][0]["ready"] is True
        assert pod["status"]["podIP"].startswith("10.")


def test_nothing_is_written_once_all_is_well(web: Any) -> None:
    settled = web.quiet()
    web.restart()
    assert web.quiet() == settled


def test_few_writes_make_a_deployment_ready(target: Any, template: Callable[..., Object], eventually: Any) -> None:
    start = target.quiet()
    target.create(deployment(template(), replicas=3), name="web")
    eventually(lambda: ready(target, "web", 3))
    target.quiet()
    made = [c.key.resource for c in target.store.changes(start)]
    assert sorted(made) == sorted([DEPLOYMENTS] * 2 + [SETS] * 2 + [PODS] * 3)


def test_a_deployment_is_scaled(web: Any, eventually: Any) -> None:
    before = set(web.names(PODS))
    web.update(DEPLOYMENTS, "web", replicas=4)
    eventually(lambda: ready(web, "web", 4))
    assert before < set(web.names(PODS))
    web.update(DEPLOYMENTS, "web", replicas=1)
    eventually(lambda: ready(web, "web", 1) and len(web.names(PODS)) == 1)
    web.update(DEPLOYMENTS, "web", replicas=0)
    eventually(lambda: not web.names(PODS) and ready(web, "web", 0))
    web.quiet()
    assert web.status(DEPLOYMENTS, "web").keys() == {"observedGeneration", "conditions"}
    assert len(web.names(SETS)) == 1


@pytest.mark.parametrize("strategy", ["RollingUpdate", "Recreate"])
def test_a_changed_template_is_rolled_out_and_back(
    target: Any, template: Callable[..., Object], eventually: Any, strategy: str
) -> None:
    target.create(deployment(template(), strategy={"type": strategy}), name="web")
    eventually(lambda: ready(target, "web", 2))
    [first] = target.names(SETS)
    original = target.get(DEPLOYMENTS, "web")["spec"]["template"]
    old = set(target.names(PODS))
    target.update(DEPLOYMENTS, "web", template=template("nginx:2"))
    eventually(lambda: ready(target, "web", 2) and not old & set(target.names(PODS)))
    target.quiet()
    assert len(target.names(SETS)) == 2
    assert {p["spec"]["containers"][0]["image"] for p in target.list(PODS)} == {"nginx:2"}
    assert target.status(DEPLOYMENTS, "web")["observedGeneration"] == 2
    target.update(DEPLOYMENTS, "web", template=original)
    eventually(lambda: {p["spec"]["containers"][0]["image"] for p in target.list(PODS)} == {"nginx:1"})
    eventually(lambda: ready(target, "web", 2))
    target.quiet()
    annotations = {s["metadata"]["name"]: s["metadata"]["annotations"] for s in target.list(SETS)}
    assert len(annotations) == 2
    assert annotations[first]["deployment.kubernetes.io/revision"] == "3"
    assert target.get(DEPLOYMENTS, "web")["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"


def test_old_replica_sets_end_with_the_history(target: Any, template: Callable[..., Object], eventually: Any) -> None:
    target.create(deployment(template(), revisionHistoryLimit=1), name="web")
    for number in range(2, 5):
        eventually(lambda: ready(target, "web", 2))
        target.update(DEPLOYMENTS, "web", template=template(f"nginx:{number}"))
    eventually(lambda: len(target.names(SETS)) == 2 and ready(target, "web", 2))


def test_a_paused_deployment_keeps_its_template(web: Any, template: Callable[..., Object], eventually: Any) -> None:
    web.update(DEPLOYMENTS, "web", paused=True, template=template("nginx:2"), replicas=3)
    eventually(lambda: len(web.names(PODS)) == 3)
    web.quiet()
    assert len(web.names(SETS)) == 1
    web.update(DEPLOYMENTS, "web", paused=False)
    eventually(lambda: {p["spec"]["containers"][0]["image"] for p in web.list(PODS)} == {"nginx:2"})


def test_a_deleted_pod_is_replaced(web: Any, eventually: Any) -> None:
    gone = web.names(PODS)[0]
    web.delete("", "v1", "pods", gone)
    eventually(lambda: len(web.names(PODS)) == 2 and gone not in web.names(PODS))


def test_owners_take_what_is_theirs_along(web: Any, eventually: Any) -> None:
    web.delete("apps", "v1", "deployments", "web")
    eventually(lambda: not web.names(SETS) and not web.names(PODS))
    web.quiet()


def test_dependents_of_anything_are_collected(target: Any, eventually: Any) -> None:
    owner = target.create({"apiVersion": "v1", "kind": "ConfigMap"}, name="owner")
    other = target.create({"apiVersion": "v1", "kind": "ConfigMap"}, name="other")

    def reference(to: Object) -> Object:
        return {"apiVersion": "v1", "kind": "ConfigMap", "name": to["metadata"]["name"], "uid": to["metadata"]["uid"]}

    def secret(name: str, *owners: Object, **metadata: Any) -> None:
        metadata["ownerReferences"] = [reference(o) for o in owners]
        target.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, **metadata}})

    secret("one", owner)
    secret("both", owner, other)
    secret("held", owner, finalizers=["x.io/hold"])
    target.quiet()
    assert target.names("secrets") == ["both", "held", "one"]
    target.delete("", "v1", "configmaps", "owner")
    eventually(lambda: target.names("secrets") == ["both", "held"])
    eventually(lambda: target.get("secrets", "held")["metadata"].get("deletionTimestamp"))
    target.delete("", "v1", "configmaps", "other")
    eventually(lambda: target.names("secrets") == ["held"])
    secret("late", owner)
    eventually(lambda: target.names("secrets") == ["held"])


def test_a_job_completes(target: Any, template: Callable[..., Object], eventually: Any) -> None:
    target.create(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "spec": {"completions": 3, "parallelism": 2, "template": template(restartPolicy="Never")},
        },
        name="once",
    )
    eventually(lambda: conditions.is_true(target.status("jobs.batch", "once").get("conditions"), "Complete"))
    settled = target.quiet()
    status = target.status("jobs.batch", "once")
    assert status["succeeded"] == 3 and status["completionTime"] and status["startTime"] and "active" not in status
    pods = target.list(PODS)
    assert len(pods) == 3
    assert {p["status"]["phase"] for p in pods} == {"Succeeded"}
    assert {p["metadata"]["labels"]["job-name"] for p in pods} == {"once"}
    target.restart()
    assert target.quiet() == settled


def test_a_job_with_a_time_to_live_goes(target: Any, template: Callable[..., Object], eventually: Any) -> None:
    spec = {"ttlSecondsAfterFinished": 0, "template": template(restartPolicy="Never")}
    target.create({"apiVersion": "batch/v1", "kind": "Job", "spec": spec}, name="once")
    eventually(lambda: not target.names("jobs.batch") and not target.names(PODS))


def test_a_suspended_job_waits(target: Any, template: Callable[..., Object], eventually: Any) -> None:
    spec = {"suspend": True, "template": template(restartPolicy="Never")}
    target.create({"apiVersion": "batch/v1", "kind": "Job", "spec": spec}, name="once")
    target.quiet()
    assert not target.names(PODS)
    target.update("jobs.batch", "once", suspend=False)
    eventually(lambda: conditions.is_true(target.status("jobs.batch", "once").get("conditions"), "Complete"))


def test_a_bare_pod_runs(target: Any, eventually: Any) -> None:
    target.create({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "a", "image": "b"}]}}, name="p")
    eventually(lambda: conditions.is_true(target.status(PODS, "p").get("conditions"), "Ready"))
    settled = target.quiet()
    assert target.get(PODS, "p")["spec"]["nodeName"] == "stand-in"
    target.restart()
    assert target.quiet() == settled


def test_a_stateful_set_has_named_pods(target: Any, template: Callable[..., Object], eventually: Any) -> None:
    spec = {"replicas": 2, "serviceName": "db", "selector": MATCH, "template": template()}
    target.create({"apiVersion": "apps/v1", "kind": "StatefulSet", "spec": spec}, name="db")
    eventually(lambda: target.status("statefulsets.apps", "db").get("readyReplicas") == 2)
    assert target.names(PODS) == ["db-0", "db-1"]
    old = {p["metadata"]["uid"] for p in target.list(PODS)}
    target.update("statefulsets.apps", "db", replicas=3, template=template("nginx:2"))
    eventually(lambda: target.status("statefulsets.apps", "db").get("readyReplicas") == 3)
    settled = target.quiet()
    assert target.names(PODS) == ["db-0", "db-1", "db-2"]
    assert not old & {p["metadata"]["uid"] for p in target.list(PODS)}
    target.restart()
    assert target.quiet() == settled


def test_a_daemon_set_has_one_pod(target: Any, template: Callable[..., Object], eventually: Any) -> None:
    spec = {"selector": MATCH, "template": template()}
    target.create({"apiVersion": "apps/v1", "kind": "DaemonSet", "spec": spec}, name="agent")
    eventually(lambda: target.status("daemonsets.apps", "agent").get("numberReady") == 1)
    settled = target.quiet()
    assert len(target.names(PODS)) == 1
    live = target.get("daemonsets.apps", "agent")
    assert healthy(GroupResource("apps", "daemonsets"), live)
    target.restart()
    assert target.quiet() == settled
