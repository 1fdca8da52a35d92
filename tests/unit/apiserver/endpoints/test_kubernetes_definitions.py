"""Definitions of Kubernetes' own kinds, the core group's among them: objects are what Kubernetes makes of them."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.model.keys import Key
from apiserver.registry import strategy

LAB = "labcluster000000"
ROOT = "/clusters/root:lab"
CRDS = f"{ROOT}/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEPLOYMENTS = f"{ROOT}/apis/apps/v1/namespaces/default/deployments"
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
SIZED = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


@pytest.fixture
def lab(api: Any) -> Any:
    api.put_workspace("root:lab", LAB, directory="workspaces/root/lab", writes="Store")
    api.put(api.manifest("v1 Namespace", "default", cluster=LAB))
    return api


def definition(group: str, plural: str, kind: str, *versions: str, schema: Any = OPEN, **spec: Any) -> Any:
    listed = [
        {"name": v, "served": True, "storage": not at, "schema": {"openAPIV3Schema": schema}}
        for at, v in enumerate(versions)
    ]
    names = {"plural": plural, "kind": kind, "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group or 'core'}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": listed, **spec},
    }


def deployment(**spec: Any) -> Any:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": labels}, "template": template, **spec},
    }


def told(found: Any) -> dict[str, Any]:
    return {c["type"]: c for c in found.json["status"]["conditions"]}


def test_its_objects_have_defaults_strategic_merge_and_columns(lab: Any, run: Any) -> None:
    made = run(lab.call("POST", CRDS, definition("apps", "deployments", "Deployment", "v1", schema=SIZED)))
    assert made.status == 201, made.body
    assert told(made)["Established"]["status"] == "True"
    reply = run(lab.call("POST", DEPLOYMENTS, deployment()))
    assert (reply.status, reply.json["spec"]["replicas"], reply.json["metadata"]["generation"]) == (201, 1, 1)
    assert lab.store.get(Key("deployments.apps", LAB, "default", "web")) is not None
    more = {"spec": {"template": {"spec": {"containers": [{"name": "log", "image": "log:1"}]}}}}
    reply = run(lab.call("PATCH", f"{DEPLOYMENTS}/web", more, kind=STRATEGIC))
    assert reply.status == 200, reply.body
    assert [c["name"] for c in reply.json["spec"]["template"]["spec"]["containers"]] == ["log", "web"]
    columns = [c["name"] for c in run(lab.get(DEPLOYMENTS, accept=TABLE)).json["columnDefinitions"]]
    assert columns[:5] == ["Name", "Ready", "Up-to-date", "Available", "Age"]
    wrong = run(lab.call("PATCH", f"{DEPLOYMENTS}/web", {"spec": {"replicas": -1}}, kind=MERGE))
    assert (wrong.status, wrong.json["details"]["causes"][0]["field"]) == (422, "spec.replicas")


def test_what_it_says_otherwise_is_told(lab: Any, run: Any) -> None:
    made = run(lab.call("POST", CRDS, definition("apps", "deployments", "Deployment", "v1", "v2", schema=SIZED)))
    why = "Deployment of apps/v1 is served as Kubernetes has it, whatever is said of its schema"
    assert made.headers["warning"] == f'299 - "{why}; versions that are not served: v2"'
    assert told(made)["ServedAsKubernetes"]["message"] == f"{why}; versions that are not served: v2"
    assert run(lab.get(f"{ROOT}/apis/apps/v2/deployments")).status == 404
    # It is its definition's, which may be changed like any other.
    put = {**made.json, "spec": {**made.json["spec"], "versions": made.json["spec"]["versions"][:1]}}
    put["status"]["storedVersions"] = ["v1"]
    changed = run(lab.call("PUT", f"{CRDS}/deployments.apps", put))
    assert (changed.status, told(changed)["NamesAccepted"]["status"]) == (200, "True")
    assert told(changed)["ServedAsKubernetes"]["message"] == why
    put = {**changed.json, "spec": definition("apps", "deployments", "Deployment", "v1")["spec"]}
    changed = run(lab.call("PUT", f"{CRDS}/deployments.apps", put))
    assert (changed.status, "ServedAsKubernetes" in told(changed), "warning" in changed.headers) == (200, False, False)


def test_the_core_group_has_its_own_kinds_and_no_others(lab: Any, run: Any) -> None:
    made = run(lab.call("POST", CRDS, definition("", "pods", "Pod", "v1")))
    assert (made.status, told(made)["Established"]["status"]) == (201, "True"), made.body
    pods = f"{ROOT}/api/v1/namespaces/default/pods"
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    reply = run(lab.call("POST", pods, pod))
    # No cluster's parts are here: nobody gives it a ServiceAccount, a priority or tolerations.
    assert (reply.status, reply.json["spec"]["restartPolicy"]) == (201, "Always"), reply.body
    assert not {"serviceAccountName", "priority", "tolerations"} & reply.json["spec"].keys()
    assert "pods" in {r["name"] for r in run(lab.get(f"{ROOT}/api/v1")).json["resources"]}
    assert run(lab.get(f"{pods}/p/log")).status == 501
    for plural, kind, fields in (
        ("toys", "Toy", {"metadata.name", "spec.group"}),
        ("services", "Servant", {"metadata.name", "spec.group"}),
    ):
        refused = run(lab.call("POST", CRDS, definition("", plural, kind, "v1")))
        assert (refused.status, {c["field"] for c in refused.json["details"]["causes"]}) == (422, fields)


def test_services_get_no_addresses_where_no_cluster_is(lab: Any, run: Any) -> None:
    for group, plural, kind, scope in (
        ("", "services", "Service", "Namespaced"),
        ("networking.k8s.io", "ipaddresses", "IPAddress", "Cluster"),
    ):
        crd = definition(group, plural, kind, "v1", scope=scope)
        crd["metadata"]["annotations"] = {"api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/1"}
        assert run(lab.call("POST", CRDS, crd)).status == 201
    service = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
    reply = run(lab.call("POST", f"{ROOT}/api/v1/namespaces/default/services", service))
    assert (reply.status, reply.json["spec"].get("clusterIP")) == (201, None)


@pytest.mark.parametrize(
    ("group", "plural", "kind"),
    [("", "secrets", "Secret"), ("", "bindings", "Binding"), ("coordination.k8s.io", "leases", "Lease")],
)
def test_what_every_workspace_has_or_nobody_stores_is_not_to_be_had(
    lab: Any, run: Any, group: str, plural: str, kind: str
) -> None:
    crd = definition(group, plural, kind, "v1")
    crd["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, a test"}
    made = run(lab.call("POST", CRDS, crd))
    if made.status == 201:
        assert told(made)["NamesAccepted"]["status"] == "False"
    else:
        assert (made.status, made.json["reason"]) == (422, "Invalid")


def test_nothing_new_while_the_definition_goes(lab: Any, run: Any) -> None:
    run(lab.call("POST", CRDS, definition("apps", "deployments", "Deployment", "v1")))
    run(lab.call("POST", DEPLOYMENTS, deployment()))
    run(lab.call("PATCH", f"{CRDS}/deployments.apps", {"metadata": {"finalizers": ["example.io/x"]}}, kind=MERGE))
    run(lab.call("DELETE", f"{CRDS}/deployments.apps"))
    other = deployment()
    other["metadata"]["name"] = "other"
    reply = run(lab.call("POST", DEPLOYMENTS, other))
    assert (reply.status, "custom resource definition is terminating" in reply.message) == (403, True)


def test_who_looks_again_finds_nothing_new() -> None:
    crd = definition("apps", "deployments", "Deployment", "v1", schema=SIZED)
    first = strategy.crd_status(crd, "2026-01-01T00:00:00Z")
    assert strategy.crd_status({**crd, "status": first}, "2027-01-01T00:00:00Z") == first
