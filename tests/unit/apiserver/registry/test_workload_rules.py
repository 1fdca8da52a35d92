"""Pods and what makes them: defaults and errors."""

from __future__ import annotations

from typing import Any

import pytest
from support.strategies import deployment, errors, kind, named, prepared, template

from apiserver.registry import strategy


def test_deployment_defaults() -> None:
    spec = prepared("apps", "deployments", deployment())["spec"]
    assert (spec["replicas"], spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]) == (1, 10, 600)
    assert spec["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
    }
    assert spec["template"]["spec"] == {
        "containers": [
            {
                "name": "c",
                "image": "nginx:1.27",
                "imagePullPolicy": "IfNotPresent",
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "resources": {},
            }
        ],
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "terminationGracePeriodSeconds": 30,
        "schedulerName": "default-scheduler",
        "securityContext": {},
    }


def test_deployment_errors() -> None:
    found = errors("apps", "deployments", named(spec={"replicas": -1, "selector": {"matchLabels": {"app": "b"}},
                                                      "template": template(restartPolicy="Never")}))  # fmt: skip
    assert found == {
        "spec.replicas": "Invalid value: -1: must be greater than or equal to 0",
        "spec.template.spec.restartPolicy": 'Unsupported value: "Never": supported values: "Always"',
        "spec.template.metadata.labels": 'Invalid value: {"app":"a"}: `selector` does not match template `labels`',
    }
    found = errors("apps", "deployments", deployment(template={"metadata": {"labels": {"app": "a"}}}))
    assert found == {"spec.template.spec.containers": "Required value"}
    mounts = [{"name": "gone", "mountPath": "/x"}]
    container = {"name": "C", "volumeMounts": mounts}
    found = errors("apps", "deployments", deployment(template=template(containers=[container])))
    assert set(found) == {f"spec.template.spec.containers[0].{f}" for f in ("name", "image", "volumeMounts[0].name")}


@pytest.mark.parametrize(
    ("image", "policy"),
    [("nginx", "Always"), ("nginx:latest", "Always"), ("host:5000/nginx", "Always"),
     ("host:5000/nginx:1", "IfNotPresent"), ("nginx@sha256:abc", "IfNotPresent")],
)  # fmt: skip
def test_pull_policy_follows_the_tag(image: str, policy: str) -> None:
    obj = prepared("", "pods", named(spec={"containers": [{"name": "c", "image": image}]}))
    assert obj["spec"]["containers"][0]["imagePullPolicy"] == policy


def test_pod_requests_follow_limits_and_quantities_are_text() -> None:
    limits = {"cpu": 0.5, "memory": "1Gi"}
    container = {"name": "c", "image": "x", "resources": {"limits": limits}}
    resources = prepared("", "pods", named(spec={"containers": [container]}))["spec"]["containers"][0]["resources"]
    assert resources["limits"] == resources["requests"] == {"cpu": "500m", "memory": "1Gi"}
    container = {"name": "c", "image": "x", "resources": {"limits": {"cpu": "lots"}}}
    assert "spec.containers[0].resources.limits[cpu]" in errors("", "pods", named(spec={"containers": [container]}))


def test_a_pod_that_ends_before_it_is_asked_to_gets_a_second() -> None:
    spec = {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": -1}
    assert prepared("", "pods", named(spec=spec))["spec"]["terminationGracePeriodSeconds"] == 1
    inner = template(terminationGracePeriodSeconds=-1)
    made = prepared("apps", "deployments", {**deployment(), "spec": {**deployment()["spec"], "template": inner}})
    assert made["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == -1


@pytest.mark.parametrize(
    ("spec", "field", "why"),
    [
        ({"hostname": "a.b"}, "hostname", "must not contain dots"),
        ({"subdomain": "A"}, "subdomain", "a lowercase RFC 1123 label"),
        ({"activeDeadlineSeconds": 0}, "activeDeadlineSeconds", "must be between 1 and 2147483647, inclusive"),
        ({"hostnameOverride": "a_b"}, "hostnameOverride", "a lowercase RFC 1123 subdomain"),
        ({"hostnameOverride": "a" * 65}, "hostnameOverride", "may not be more than 64 bytes"),
        ({"hostnameOverride": "a", "hostNetwork": True}, "hostnameOverride", "when hostNetwork is true"),
        ({"hostnameOverride": "a", "setHostnameAsFQDN": True}, "hostnameOverride", "when setHostnameAsFQDN is true"),
    ],
)
def test_what_a_pod_may_not_call_itself(spec: dict[str, Any], field: str, why: str) -> None:
    containers = [{"name": "c", "image": "i"}]
    found = errors("", "pods", named(spec={"containers": containers, **spec}))
    assert list(found) == [f"spec.{field}"]
    assert why in found[f"spec.{field}"]


def test_what_a_pod_may_call_itself() -> None:
    containers = [{"name": "c", "image": "i"}]
    fine = {"hostname": "a", "subdomain": "b", "hostnameOverride": "a.b", "activeDeadlineSeconds": 1}
    assert errors("", "pods", named(spec={"containers": containers, **fine})) == {}


def test_job_and_cron_job() -> None:
    spec = prepared("batch", "jobs", named(spec={"template": template(restartPolicy="Never")}))["spec"]
    assert (spec["completions"], spec["parallelism"], spec["backoffLimit"], spec["suspend"]) == (1, 1, 6, False)
    assert errors("batch", "jobs", named(spec={"template": template()})) == {
        "spec.template.spec.restartPolicy": 'Required value: valid values: "OnFailure", "Never"'
    }
    job = {"spec": {"template": template(restartPolicy="OnFailure")}}
    assert prepared("batch", "cronjobs", named(spec={"schedule": "* * * * *", "jobTemplate": job}))
    assert "spec.schedule" in errors("batch", "cronjobs", named(spec={"schedule": "* *", "jobTemplate": job}))


def stateful(**spec: Any) -> dict[str, Any]:
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    mounted = template()
    mounted["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    chosen = {"matchLabels": {"app": "a"}}
    return named(spec={"selector": chosen, "template": mounted, "volumeClaimTemplates": [claim], **spec})


def test_a_stateful_set_mounts_its_claims() -> None:
    prepared("apps", "statefulsets", stateful())
    wrong = errors("apps", "statefulsets", stateful(volumeClaimTemplates=[]))
    assert list(wrong) == ["spec.template.spec.containers[0].volumeMounts[0].name"]


def test_a_stateful_set_that_names_its_strategy_gets_no_partition() -> None:
    by_default = prepared("apps", "statefulsets", stateful())["spec"]["updateStrategy"]
    assert by_default == {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    told = stateful(updateStrategy={"type": "RollingUpdate"})
    assert prepared("apps", "statefulsets", told)["spec"]["updateStrategy"] == {"type": "RollingUpdate"}


def test_ports_of_the_host_are_named_in_pods_alone() -> None:
    def spec() -> dict[str, Any]:
        return {"containers": [{"name": "c", "image": "x", "ports": [{"containerPort": 80}]}], "hostNetwork": True}

    def ports(found: dict[str, Any]) -> Any:
        return found["containers"][0]["ports"]

    pod = prepared("", "pods", named(spec=spec()))
    assert ports(pod["spec"]) == [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]
    made = prepared("apps", "deployments", deployment(template={**template(), "spec": spec()}))
    assert ports(made["spec"]["template"]["spec"]) == [{"containerPort": 80, "protocol": "TCP"}]


def test_a_job_without_labels_has_those_of_its_template() -> None:
    job = prepared("batch", "jobs", named(spec={"template": {"spec": template(restartPolicy="Never")["spec"]}}))
    assert job["spec"]["manualSelector"] is False
    job["metadata"]["uid"] = "u"
    strategy.identified(kind("batch", "jobs"), job)
    assert job["metadata"]["labels"] == job["spec"]["template"]["metadata"]["labels"]
    assert job["metadata"]["labels"]["batch.kubernetes.io/controller-uid"] == "u"
