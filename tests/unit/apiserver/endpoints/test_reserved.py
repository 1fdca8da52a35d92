"""Reserved labels, annotations and groups: whoever has every right in a workspace may not say what the system says."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.auth.user import User

CONFIGMAPS = "/clusters/root:shop/api/v1/namespaces/default/configmaps"
CRDS = "/clusters/root:shop/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ALL = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
PATCH = "application/merge-patch+json"
RESERVED = [
    ("annotations", "core.kcp.io/shard"),
    ("annotations", "core.kcp.io/inactive"),
    ("annotations", "core.kcp.io/max-total-objects"),
    ("annotations", "authorization.kcp.io/required-groups"),
    ("annotations", "experimental.tenancy.kcp.io/owner"),
    ("annotations", "internal.tenancy.kcp.io/cluster"),
    ("annotations", "internal.tenancy.kcp.io/shard"),
    ("annotations", "internal.tenancy.kcp.io/type"),
    ("annotations", "kcp.io/path"),
    ("labels", "tenancy.kcp.io/phase"),
    ("labels", "internal.apis.kcp.io/export"),
    ("labels", "initializer.internal.kcp.io/0123456789abcdef"),
    ("labels", "terminator.internal.kcp.io/0123456789abcdef"),
]


@pytest.fixture
def tenant(api: Any) -> Any:
    api.put_workspace("root:shop", api.SHOP, directory="workspaces/root/shop", writes="Store")
    api.allow("ann", ALL, cluster=api.SHOP)
    return api


def configmap(part: str = "annotations", key: str = "", value: str = "x") -> Any:
    metadata: dict[str, Any] = {"name": "a"} | ({part: {key: value}} if key else {})
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


@pytest.mark.parametrize(("part", "key"), RESERVED)
def test_nobody_makes_an_object_that_says_it(tenant: Any, run: Any, part: str, key: str) -> None:
    found = run(tenant.call("POST", CONFIGMAPS, configmap(part, key), user="ann"))
    assert found.status == 403
    assert found.message == f'configmaps "a" is forbidden: modification of reserved {part[:-1]}: "{key}"'


@pytest.mark.parametrize(("part", "key"), RESERVED)
def test_nobody_changes_what_is_said(tenant: Any, run: Any, part: str, key: str) -> None:
    made = run(tenant.call("POST", CONFIGMAPS, configmap(part, key)))
    assert made.status == 201, made.body
    assert made.json["metadata"][part][key] == "x"
    for said in ("y", None):
        changed = {"metadata": {part: {key: said}}}
        found = run(tenant.call("PATCH", f"{CONFIGMAPS}/a", changed, kind=PATCH, user="ann"))
        assert (found.status, f'modification of reserved {part[:-1]}: "{key}"' in found.message) == (403, True)
    kept = run(tenant.call("PATCH", f"{CONFIGMAPS}/a", {"data": {"k": "v"}}, kind=PATCH, user="ann"))
    assert (kept.status, kept.json["metadata"][part][key]) == (200, "x")


@pytest.mark.parametrize(
    "key", ["example.org/shard", "kcp.io.example.org/path", "experimental.tenancy.kcp.io/is-mount"]
)
def test_everything_else_is_the_tenants(tenant: Any, run: Any, key: str) -> None:
    assert run(tenant.call("POST", CONFIGMAPS, configmap("annotations", key), user="ann")).status == 201


def test_a_binding_says_no_more_of_its_pod(tenant: Any, run: Any) -> None:
    """Its labels and annotations become the Pod's."""
    tenant.put_workspace(
        "root:shop", tenant.SHOP, directory="workspaces/root/shop", writes="Store", builtins="Kubernetes"
    )
    pod = tenant.manifest("v1 Pod", "p", "default", tenant.SHOP, spec={"containers": [{"name": "c", "image": "x"}]})
    tenant.put({**pod, "status": {"phase": "Pending"}})
    pods = "/clusters/root:shop/api/v1/namespaces/default/pods/p"
    for said in ({"labels": {"tenancy.kcp.io/phase": "x"}}, {"annotations": {"core.kcp.io/shard": "x"}}):
        bound = {"metadata": {"name": "p", **said}, "target": {"kind": "Node", "name": "n"}}
        found = run(tenant.call("POST", f"{pods}/binding", bound, user="ann"))
        assert (found.status, "modification of reserved" in found.message) == (403, True)
    marks = {"treeplane.dev/source-path": "workspaces/root/a.yaml", "kcp.io/cluster": "root", "k": "v"}
    bound = {"metadata": {"name": "p", "annotations": marks}, "target": {"kind": "Node", "name": "n"}}
    assert run(tenant.call("POST", f"{pods}/binding", bound, user="ann")).status == 201
    said = run(tenant.get(pods)).json["metadata"]["annotations"]
    assert said == {"kcp.io/cluster": tenant.SHOP, "k": "v"}


def test_administrators_of_everything_may(tenant: Any, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    everybody = User("kcp-admin", ("system:kcp:admin", "system:authenticated"))
    monkeypatch.setattr(tenant.app._authenticator, "authenticate", lambda *_, **__: everybody)
    assert run(tenant.call("POST", CONFIGMAPS, configmap("annotations", "core.kcp.io/inactive"))).status == 201


def definition(group: str, annotations: dict[str, str] | None = None) -> Any:
    names = {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    spec = {"group": group, "scope": "Cluster", "names": names, "versions": [version]}
    metadata = {"name": f"gadgets.{group}", "annotations": annotations or {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": spec,
    }


@pytest.mark.parametrize("group", ["apis.kcp.io", "internal.apis.kcp.io"])
def test_groups_of_the_system_are_nobodys(tenant: Any, run: Any, group: str) -> None:
    for user in ("ann", ""):
        found = run(tenant.call("POST", CRDS, definition(group), user=user))
        assert found.status == 403
        assert found.message.endswith(f'"gadgets.{group}" is forbidden: {group} is a reserved group')


@pytest.mark.parametrize("key", ["apis.kcp.io/bound-crd", "x.apis.kcp.io/y"])
def test_so_are_annotations_of_definitions(tenant: Any, run: Any, key: str) -> None:
    for user in ("ann", ""):
        found = run(tenant.call("POST", CRDS, definition("example.org", {key: ""}), user=user))
        assert (found.status, found.message.endswith(f"{key} is a reserved annotation")) == (403, True)
    there = definition("example.org", {key: "", "kcp.io/cluster": tenant.SHOP})
    tenant.put({**there, "metadata": {**there["metadata"], "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}})
    labelled = {"metadata": {"labels": {"a": "b"}}}
    changed = run(tenant.call("PATCH", f"{CRDS}/gadgets.example.org", labelled, kind=PATCH, user="ann"))
    assert changed.status == 200, "what is there does not stand in its owner's way"
