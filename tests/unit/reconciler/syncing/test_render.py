"""What goes down to a target, and what does not."""

from __future__ import annotations

from typing import Any

from apiserver.model.kinds import GroupResource
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


def test_an_autoscaler_owns_the_replicas() -> None:
    kind = GroupResource("apps", "deployments")
    assert render(kind, upstream(spec={"replicas": 2}), TO)["spec"] == {"replicas": 2}
    assert render(kind, upstream(spec={"replicas": 2}), TO, scaled=True)["spec"] == {}


def test_the_digest_does_not_depend_on_order() -> None:
    one = encode({"a": 1, "b": {"c": 1, "d": 2}})
    other = encode({"b": {"d": 2, "c": 1}, "a": 1})
    assert one == other
    assert encode({"a": 2})[1] != encode({"a": 1})[1]
