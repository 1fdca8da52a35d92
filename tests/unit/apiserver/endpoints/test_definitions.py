"""What a CustomResourceDefinition may not take: the names, the objects and the rules of built-in kinds."""

from __future__ import annotations

from typing import Any

import pytest

LAB = "labcluster000000"
APIS = "/clusters/root:lab/apis"
CRDS = f"{APIS}/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE = "application/merge-patch+json"


@pytest.fixture
def lab(api: Any) -> Any:
    api.put_workspace("root:lab", LAB, directory="workspaces/root/lab", writes="Store")
    api.put(api.manifest("v1 Namespace", "default", cluster=LAB))
    return api


def definition(group: str, plural: str, kind: str, version: str = "v9", scope: str = "Cluster") -> Any:
    """Of objects that may say anything."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    names = {"plural": plural, "kind": kind, "listKind": f"{kind}List"}
    versions = [{"name": version, "served": True, "storage": True, "schema": schema}]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}", "annotations": {"api-approved.kubernetes.io": "unapproved, a test"}},
        "spec": {"group": group, "scope": scope, "names": names, "versions": versions},
    }


def verdict(found: Any) -> dict[str, str]:
    return {c["type"]: c["status"] for c in found.json["status"]["conditions"]}


BUILT_IN = [
    ("rbac.authorization.k8s.io", "clusterroles", "ClusterRole"),
    ("rbac.authorization.k8s.io", "others", "ClusterRole"),
    ("workload.kcp.io", "synctargets", "SyncTarget"),
    ("tenancy.kcp.io", "workspaces", "Workspace"),
    ("events.k8s.io", "events", "Event"),
]


@pytest.mark.parametrize(("group", "plural", "kind"), BUILT_IN)
def test_names_of_built_in_kinds_are_not_to_be_had(lab: Any, run: Any, group: str, plural: str, kind: str) -> None:
    """Another version would be another schema for the same objects."""
    made = run(lab.call("POST", CRDS, definition(group, plural, kind)))
    assert (made.status, verdict(made)["NamesAccepted"], verdict(made)["Established"]) == (201, "False", "False")
    assert "is already in use" in str(made.json["status"]["conditions"])
    assert run(lab.call("GET", f"{APIS}/{group}/v9/{plural}")).status == 404


def test_whether_it_is_served_is_decided_and_not_told(lab: Any, run: Any) -> None:
    name = "clusterroles.rbac.authorization.k8s.io"
    run(lab.call("POST", CRDS, definition("rbac.authorization.k8s.io", "clusterroles", "ClusterRole")))
    told = [{"type": kind, "status": "True", "reason": "r", "message": "m"} for kind in ("Established", "Mine")]
    patch = {"status": {"conditions": told, "acceptedNames": {"plural": "clusterroles", "kind": "ClusterRole"}}}
    found = run(lab.call("PATCH", f"{CRDS}/{name}/status", patch, kind=MERGE))
    assert (found.status, verdict(found)["Established"], verdict(found)["Mine"]) == (200, "False", "True")
    assert found.json["status"]["acceptedNames"] == {"plural": "", "kind": ""}
    assert run(lab.call("GET", f"{APIS}/rbac.authorization.k8s.io/v9/clusterroles")).status == 404


KUBERNETES = [
    ("networking.k8s.io", "ingresses", "Ingress", "v1", {"spec": "anything"}),
    ("networking.k8s.io", "ipaddresses", "IPAddress", "v9", {"spec": {"parentRef": 1}}),
    ("discovery.k8s.io", "endpointslices", "EndpointSlice", "v1", {"endpoints": 3}),
    ("rbac.authorization.k8s.io", "teams", "Team", "v1", {"rules": "all"}),
]


@pytest.mark.parametrize(("group", "plural", "kind", "version", "content"), KUBERNETES)
def test_a_custom_resource_is_what_its_definition_says(
    lab: Any, run: Any, group: str, plural: str, kind: str, version: str, content: Any
) -> None:
    """Rules of Kubernetes are made for Kubernetes' kinds. What has but the name of one is none: another kind, another
    scope, or no version of theirs."""
    made = run(lab.call("POST", CRDS, definition(group, plural, kind, version)))
    assert verdict(made)["Established"] == "True"
    lab.allow("ann", {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, cluster=LAB)
    path = f"{APIS}/{group}/{version}/{plural}"
    obj = {"apiVersion": f"{group}/{version}", "kind": kind, "metadata": {"name": "it"}, **content}
    reply = run(lab.call("POST", path, obj, user="ann"))
    assert (reply.status, {k: reply.json[k] for k in content}) == (201, content)
    more = run(lab.call("PATCH", f"{path}/it", {"metadata": {"labels": {"a": "b"}}}, kind=MERGE, user="ann"))
    assert (more.status, {k: more.json[k] for k in content}) == (200, content)
