"""What goes down to a target, and what does not."""

from __future__ import annotations

import copy
from typing import Any

from apiserver.model.kinds import GroupResource
from apiserver.registry.behaviours.workloads import job_identified
from reconciler.plan.jobs import JOBS
from reconciler.syncing.render import Destination, encode, render

TO = Destination("KEY", "kcp-abc", "applyset-x-v1")
CONFIG, SERVICE = GroupResource("", "configmaps"), GroupResource("", "services")


def upstream(kind: str = "ConfigMap", **content: Any) -> dict[str, Any]:
    metadata = {
        "name": "web",
        "namespace": "shop",
        "uid": "u",
        "resourceVersion": "7",
        "generation": 3,
        "finalizers": ["workload.kcp.io/syncer-KEY"],
        "ownerReferences": [{"name": "x"}],
        "managedFields": [{}],
        "labels": {"app": "web", "state.workload.kcp.io/KEY": "Sync", "kcp.io/tenant": "t"},
        "annotations": {
            "kcp.io/cluster": "c",
            "treeplane.dev/source-commit": "c1",
            "kubectl.kubernetes.io/last-applied-configuration": "{}",
            "team": "shop",
        },
    }
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "status": {"x": 1}, **content}


def test_only_content_goes_down() -> None:
    rendered = render(CONFIG, upstream(data={"a": "b"}, binaryData=None), TO)
    assert rendered == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "web",
            "namespace": "kcp-abc",
            "labels": {
                "app": "web",
                "internal.workload.kcp.io/cluster": "KEY",
                "applyset.kubernetes.io/part-of": "applyset-x-v1",
            },
            "annotations": {"team": "shop"},
        },
        "data": {"a": "b"},
    }


def test_addresses_of_services_stay_upstream_and_headless_stays_headless() -> None:
    spec = {"clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"], "healthCheckNodePort": 3, "ports": []}
    assert render(SERVICE, upstream("Service", spec=spec), TO)["spec"] == {"ports": []}
    headless = upstream("Service", spec={"clusterIP": "None"})
    assert render(SERVICE, headless, TO)["spec"] == {"clusterIP": "None"}
    assert spec["clusterIP"] == "10.0.0.7", "the upstream object is not changed"


def test_token_secrets_become_opaque() -> None:
    token = upstream("Secret", type="kubernetes.io/service-account-token", data={})
    assert render(GroupResource("", "secrets"), token, TO)["type"] == "Opaque"


def test_a_job_goes_down_without_its_end_and_with_its_uid() -> None:
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {}}
    job = upstream("Job", spec={"ttlSecondsAfterFinished": 5, "backoffLimit": 1, "template": template})
    rendered = render(JOBS, job, TO)
    assert rendered["spec"] == {"backoffLimit": 1, "template": template}
    assert rendered["metadata"]["annotations"] == {"team": "shop", "treeplane.dev/of": "u"}
    cron = upstream("CronJob", spec={"jobTemplate": {"spec": {"ttlSecondsAfterFinished": 5}}})
    kept = render(GroupResource("batch", "cronjobs"), cron, TO)["spec"]
    assert kept == cron["spec"], "Jobs that a CronJob makes are the target's"


def test_a_job_of_the_api_selects_its_pods_on_each_cluster_anew() -> None:
    """Upstream it selects them by its uid there, which no cluster would take."""
    job = upstream("Job", spec={"template": {"metadata": {"labels": {"app": "x"}}, "spec": {}}})
    before = copy.deepcopy(job)
    job_identified(job)
    assert "selector" in job["spec"]
    assert render(JOBS, job, TO)["spec"] == before["spec"]
    manual = upstream("Job", spec={"manualSelector": True, "selector": {"matchLabels": {"job-name": "mine"}}})
    assert render(JOBS, manual, TO)["spec"] == manual["spec"]


def test_an_autoscaler_owns_the_replicas() -> None:
    kind = GroupResource("apps", "deployments")
    assert render(kind, upstream(spec={"replicas": 2}), TO)["spec"] == {"replicas": 2}
    assert render(kind, upstream(spec={"replicas": 2}), TO, scaled=True)["spec"] == {}


def test_the_digest_does_not_depend_on_order() -> None:
    one = encode({"a": 1, "b": {"c": 1, "d": 2}})
    other = encode({"b": {"d": 2, "c": 1}, "a": 1})
    assert one == other
    assert encode({"a": 2})[1] != encode({"a": 1})[1]
