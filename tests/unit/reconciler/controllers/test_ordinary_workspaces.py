"""The loops of a cluster in ordinary workspaces, those that git declares and those that were made through the API."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.apifleet import LAB_TYPE, LAB_YAML, WIDGETS, ApiFleet
from support.settling import CA

from apiserver.model import conditions

LAB = "workspaces/root/lab"
SHOP = "root:lab:shop"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MAPS = "/api/v1/namespaces/{}/configmaps"
GITS = """\
apiVersion: v1
kind: Namespace
metadata: {name: gits}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: all}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {into: all}}]}
rules: []
"""
READ = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[ApiFleet]:
    """root:lab is declared and takes writes; root:lab:shop was made through the API."""
    made = ApiFleet(tmp_path / "fleet")
    made.begin({"workspaces/root/type.yaml": LAB_TYPE, f"{LAB}/workspace.yaml": LAB_YAML, f"{LAB}/gits.yaml": GITS})
    assert not made.held()
    made.settle()
    made.make(SHOP)
    yield made
    made.close()


def post(fleet: ApiFleet, path: str, rest: str, body: Any) -> None:
    reply = fleet.call("POST", path, rest, body)
    assert reply.status == 201, reply.message


def named(kind: str, version: str, name: str, **metadata: Any) -> Any:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **metadata}}


def namespaced(fleet: ApiFleet, path: str, namespace: str) -> tuple[bool, Any]:
    """Whether it has the account, and whose certificate it shows."""
    account = fleet.call("GET", path, f"/api/v1/namespaces/{namespace}/serviceaccounts/default")
    ca = fleet.call("GET", path, f"{MAPS.format(namespace)}/kube-root-ca.crt")
    return account.status == 200, ca.json["data"]["ca.crt"] if ca.status == 200 else None


def test_namespaces_that_are_made_through_the_api_have_what_a_clusters_have(fleet: ApiFleet) -> None:
    for path in ("root:lab", SHOP):
        post(fleet, path, "/api/v1/namespaces", named("Namespace", "v1", "mine"))
    fleet.settle()
    assert [namespaced(fleet, path, "mine") for path in ("root:lab", SHOP)] == [(True, CA), (True, CA)]
    assert namespaced(fleet, SHOP, "default") == (True, CA)


def test_of_what_git_declares_nothing_is_added(fleet: ApiFleet) -> None:
    fleet.settle()
    assert [namespaced(fleet, "root:lab", name) for name in ("default", "gits")] == [(False, None), (False, None)]


def test_they_come_back_and_go_with_their_namespace(fleet: ApiFleet) -> None:
    post(fleet, "root:lab", "/api/v1/namespaces", named("Namespace", "v1", "mine"))
    fleet.settle()
    fleet.call("DELETE", "root:lab", "/api/v1/namespaces/mine/serviceaccounts/default")
    fleet.call("DELETE", "root:lab", f"{MAPS.format('mine')}/kube-root-ca.crt")
    fleet.settle()
    assert namespaced(fleet, "root:lab", "mine") == (True, CA)
    fleet.call("DELETE", "root:lab", "/api/v1/namespaces/mine")
    fleet.settle()
    cluster = fleet.record("root:lab").cluster
    assert not [key for key in fleet.store.keys(cluster) if key.namespace == "mine"]


def test_rules_follow_the_roles_that_are_selected(fleet: ApiFleet) -> None:
    part = {**named("ClusterRole", "rbac.authorization.k8s.io/v1", "part", labels={"into": "all"}), "rules": [READ]}
    whole = {
        **named("ClusterRole", "rbac.authorization.k8s.io/v1", "whole"),
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"into": "all"}}]},
    }
    for path in ("root:lab", SHOP):
        post(fleet, path, f"{RBAC}/clusterroles", whole)
        post(fleet, path, f"{RBAC}/clusterroles", part)
    fleet.settle()
    for path, name in (("root:lab", "all"), ("root:lab", "whole"), (SHOP, "whole")):
        assert fleet.call("GET", path, f"{RBAC}/clusterroles/{name}").json["rules"] == [READ]
        fleet.call("DELETE", path, f"{RBAC}/clusterroles/part")
    fleet.settle()
    assert not fleet.call("GET", "root:lab", f"{RBAC}/clusterroles/all").json["rules"]


def test_the_rules_of_a_role_in_git_are_no_change_of_it(fleet: ApiFleet) -> None:
    part = {**named("ClusterRole", "rbac.authorization.k8s.io/v1", "part", labels={"into": "all"}), "rules": [READ]}
    post(fleet, "root:lab", f"{RBAC}/clusterroles", part)
    fleet.settle()
    fleet.commit({f"{LAB}/gits.yaml": GITS + "# said again\n"})
    fleet.settle()
    assert not fleet.held()
    assert fleet.get("root:lab", "clusterroles.rbac.authorization.k8s.io", "all")["rules"] == [READ]
    recorded = fleet.residue("root:lab", "clusterroles.rbac.authorization.k8s.io", "all") or {}
    assert "rules" not in recorded


def definition(plural: str, kind: str) -> Any:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    spec = {
        "group": "example.io",
        "scope": "Namespaced",
        "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
    }
    return {**named("CustomResourceDefinition", "apiextensions.k8s.io/v1", f"{plural}.example.io"), "spec": spec}


@pytest.mark.parametrize("path", ["root:lab", SHOP])
def test_of_two_definitions_with_a_name_the_second_is_served_when_the_first_has_gone(
    fleet: ApiFleet, path: str
) -> None:
    def established(name: str) -> bool:
        status = fleet.call("GET", path, f"{CRDS}/{name}.example.io").json["status"]
        return conditions.is_true(status["conditions"], "Established")

    post(fleet, path, CRDS, definition("widgets", "Widget"))
    post(fleet, path, CRDS, definition("gadgets", "Widget"))
    fleet.settle()
    assert (established("widgets"), established("gadgets")) == (True, False)
    fleet.call("DELETE", path, f"{CRDS}/widgets.example.io")
    fleet.settle()
    assert established("gadgets")


def bind_widgets(fleet: ApiFleet, path: str) -> None:
    """An API of root:lab's in another workspace."""
    apis = "/apis/apis.kcp.io/v1alpha1"
    post(fleet, "root:lab", f"{apis}/apiresourceschemas", WIDGETS)
    export = {**named("APIExport", "apis.kcp.io/v1alpha1", "widgets")}
    post(fleet, "root:lab", f"{apis}/apiexports", {**export, "spec": {"latestResourceSchemas": [WIDGETS["metadata"]["name"]]}})  # fmt: skip  # noqa: E501
    fleet.settle()
    reference = {"reference": {"export": {"path": "root:lab", "name": "widgets"}}}
    post(fleet, path, f"{apis}/apibindings", {**named("APIBinding", "apis.kcp.io/v1alpha1", "widgets"), "spec": reference})  # fmt: skip  # noqa: E501
    fleet.settle()


def test_what_belongs_to_somebody_goes_with_him_whatever_its_kind(fleet: ApiFleet) -> None:
    bind_widgets(fleet, SHOP)
    widgets = "/apis/example.io/v1/namespaces/default/widgets"
    post(fleet, SHOP, MAPS.format("default"), named("ConfigMap", "v1", "owner"))
    uid = fleet.call("GET", SHOP, f"{MAPS.format('default')}/owner").json["metadata"]["uid"]
    owner = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}]
    post(fleet, SHOP, widgets, named("Widget", "example.io/v1", "w", ownerReferences=owner))
    uid = fleet.call("GET", SHOP, f"{widgets}/w").json["metadata"]["uid"]
    owner = [{"apiVersion": "example.io/v1", "kind": "Widget", "name": "w", "uid": uid}]
    post(fleet, SHOP, MAPS.format("default"), named("ConfigMap", "v1", "last", ownerReferences=owner))
    fleet.settle()
    assert fleet.call("GET", SHOP, f"{MAPS.format('default')}/last").status == 200
    fleet.call("DELETE", SHOP, f"{MAPS.format('default')}/owner")
    fleet.settle()
    assert fleet.call("GET", SHOP, f"{widgets}/w").status == 404
    assert fleet.call("GET", SHOP, f"{MAPS.format('default')}/last").status == 404


def test_objects_of_bound_kinds_go_with_their_namespace(fleet: ApiFleet) -> None:
    bind_widgets(fleet, SHOP)
    post(fleet, SHOP, "/api/v1/namespaces", named("Namespace", "v1", "mine"))
    widgets = "/apis/example.io/v1/namespaces/mine/widgets"
    post(fleet, SHOP, widgets, named("Widget", "example.io/v1", "w", finalizers=["example.io/hold"]))
    fleet.call("DELETE", SHOP, "/api/v1/namespaces/mine")
    fleet.settle()
    said = fleet.call("GET", SHOP, "/api/v1/namespaces/mine").json["status"]
    assert "widgets.example.io has 1 resource instances" in str(said["conditions"])
    let_go = {"metadata": {"finalizers": None}}
    fleet.call("PATCH", SHOP, f"{widgets}/w", let_go, kind="application/merge-patch+json")
    fleet.settle()
    assert fleet.call("GET", SHOP, "/api/v1/namespaces/mine").status == 404


def used(fleet: ApiFleet, path: str) -> Any:
    fleet.settle()
    return fleet.call("GET", path, "/api/v1/namespaces/default/resourcequotas/q").json["status"]["used"]


def test_a_quota_says_how_many_there_are_of_each_kind(fleet: ApiFleet) -> None:
    bind_widgets(fleet, SHOP)
    hard = {"count/configmaps": "5", "configmaps": "5", "count/widgets.example.io": "5", "count/none.example.io": "1",
            "pods": "3", "cpu": "1"}  # fmt: skip
    quota = {**named("ResourceQuota", "v1", "q"), "spec": {"hard": hard}}
    post(fleet, SHOP, "/api/v1/namespaces/default/resourcequotas", quota)
    before = {"count/configmaps": "1", "configmaps": "1", "count/widgets.example.io": "0", "count/none.example.io": "0"}
    assert used(fleet, SHOP) == before  # the root CA's is one
    post(fleet, SHOP, MAPS.format("default"), named("ConfigMap", "v1", "one"))
    post(fleet, SHOP, "/apis/example.io/v1/namespaces/default/widgets", named("Widget", "example.io/v1", "w"))
    post(fleet, SHOP, "/api/v1/namespaces", named("Namespace", "v1", "mine"))
    post(fleet, SHOP, MAPS.format("mine"), named("ConfigMap", "v1", "two"))
    assert used(fleet, SHOP) == {**before, "count/configmaps": "2", "configmaps": "2", "count/widgets.example.io": "1"}
    fleet.call("DELETE", SHOP, "/apis/example.io/v1/namespaces/default/widgets/w")
    assert used(fleet, SHOP)["count/widgets.example.io"] == "0"


def test_a_quota_of_git_is_counted_and_stays_what_its_file_says(fleet: ApiFleet) -> None:
    text = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\nspec: {hard: {configmaps: 5}}\n"
    fleet.commit({f"{LAB}/quota.yaml": text})
    assert used(fleet, "root:lab") == {"configmaps": "0"}
    post(fleet, "root:lab", MAPS.format("default"), named("ConfigMap", "v1", "one"))
    assert used(fleet, "root:lab") == {"configmaps": "1"}
    fleet.load()
    assert not fleet.held()
    assert used(fleet, "root:lab") == {"configmaps": "1"}
