"""Workspaces that start with all of Kubernetes' kinds, and what they start with."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.loadedfleet import A, LoadedFleet, configmap

from apiserver.model.tables import Table, row_key
from apiserver.registry import tree
from apiserver.registry.kinds import kubernetes_builtins
from apiserver.storage.protocol import PutRow
from reconciler.plan import bootstrap

COMPAT = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\nspec: {type: {name: kube-compat, path: root}}\n"
PLAIN = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\n"


@pytest.fixture
def compat(empty: LoadedFleet) -> LoadedFleet:
    empty.begin({f"{A}/workspace.yaml": COMPAT, f"{A}/app.yaml": configmap()})
    return empty


def test_the_type_gives_kinds_and_writes(compat: LoadedFleet) -> None:
    record = compat.record("root:a")
    assert (record.errors, record.builtins, record.writes) == ([], "Kubernetes", "Store")
    assert compat.loader._catalog.kinds(record.cluster) is kubernetes_builtins()
    assert (compat.record("root").builtins, compat.record("root").writes) == ("", "")
    assert tree.workspace_of(compat.store, record.cluster) == record


@pytest.mark.parametrize(
    ("resource", "name", "namespace"),
    [
        ("namespaces", "kube-system", ""),
        ("namespaces", "kube-public", ""),
        ("namespaces", "kube-node-lease", ""),
        ("services", "kubernetes", "default"),
        ("endpoints", "kubernetes", "default"),
        ("endpointslices.discovery.k8s.io", "kubernetes", "default"),
        ("servicecidrs.networking.k8s.io", "kubernetes", ""),
        ("ipaddresses.networking.k8s.io", "10.0.0.1", ""),
        ("priorityclasses.scheduling.k8s.io", "system-node-critical", ""),
        ("apiservices.apiregistration.k8s.io", "v1.", ""),
        ("apiservices.apiregistration.k8s.io", "v2.autoscaling", ""),
        ("componentstatuses", "etcd-0", ""),
        ("clusterroles.rbac.authorization.k8s.io", "cluster-admin", ""),
        ("clusterrolebindings.rbac.authorization.k8s.io", "system:discovery", ""),
        ("clusterroles.rbac.authorization.k8s.io", "system:controller:job-controller", ""),
        ("clusterrolebindings.rbac.authorization.k8s.io", "system:controller:job-controller", ""),
        ("roles.rbac.authorization.k8s.io", "extension-apiserver-authentication-reader", "kube-system"),
        ("rolebindings.rbac.authorization.k8s.io", "system:controller:bootstrap-signer", "kube-public"),
        ("flowschemas.flowcontrol.apiserver.k8s.io", "service-accounts", ""),
        ("prioritylevelconfigurations.flowcontrol.apiserver.k8s.io", "workload-low", ""),
    ],
)
def test_it_starts_with_what_a_cluster_starts_with(
    compat: LoadedFleet, resource: str, name: str, namespace: str
) -> None:
    found = compat.get("root:a", resource, name, namespace)
    assert found["metadata"]["creationTimestamp"]
    assert compat.find("root", resource, name, namespace) is None


def test_statuses_stand_from_the_first_moment(compat: LoadedFleet) -> None:
    service = compat.get("root:a", "apiservices.apiregistration.k8s.io", "v1.apps", "")
    assert compat.condition(service, "Available")["status"] == "True"
    cidr = compat.get("root:a", "servicecidrs.networking.k8s.io", "kubernetes", "")
    assert compat.condition(cidr, "Ready")["status"] == "True"


def test_what_clients_changed_stays_and_judging_again_writes_nothing(compat: LoadedFleet) -> None:
    key = compat.key("root:a", "namespaces", "kube-system", "")
    compat.update(key, lambda obj: obj["metadata"].setdefault("labels", {}).update(mine="yes"))
    before = compat.store.revision()
    compat.loader.recheck(["root:a"])
    assert compat.store.revision() == before
    assert compat.get("root:a", "namespaces", "kube-system", "")["metadata"]["labels"]["mine"] == "yes"


def test_what_a_newer_version_ships_reaches_workspaces_that_there_are(
    compat: LoadedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-new"}}
    shipped = bootstrap.objects
    monkeypatch.setattr(bootstrap, "objects", lambda groups, at: [*shipped(groups, at), added])
    monkeypatch.setattr(bootstrap, "digest", lambda: "another")
    compat.recheck()
    assert compat.written() == ["+namespaces/root:a//kube-new"]
    compat.recheck()
    assert compat.all_changes() == []


def test_git_may_declare_kinds_of_kubernetes_there(compat: LoadedFleet) -> None:
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 80}]}\n"
    compat.commit({f"{A}/web.yaml": service})
    assert compat.record("root:a").errors == []
    assert compat.get("root:a", "services", "web")["spec"]["ports"][0]["targetPort"] == 80


def test_a_type_keeps_what_a_workspace_started_with(compat: LoadedFleet) -> None:
    compat.commit({f"{A}/workspace.yaml": PLAIN})
    record = compat.record("root:a")
    assert record.errors
    assert record.builtins == "Kubernetes"


def test_a_lost_store_comes_back_with_the_same_objects(
    compat: LoadedFleet, another: Callable[..., LoadedFleet]
) -> None:
    compat.publish()
    second = another(compat, keys=compat.keys)
    second.load(second.recorded())
    before, after = compat.everything(), second.everything()
    assert before.keys() == after.keys()
    assert {k for k in before if before[k] != after[k]} == set()


def test_a_workspace_that_goes_leaves_nothing(compat: LoadedFleet) -> None:
    cluster = compat.record("root:a").cluster
    compat.store.write(PutRow(Table.NODE_PORTS, row_key(cluster, "30000"), b'["default","web"]')).result()
    compat.delete({f"{A}/workspace.yaml": None, f"{A}/app.yaml": None})
    assert "root:a" not in compat.paths()
    assert [key for key in compat.everything() if key.cluster == cluster] == []
    assert compat.store.scan_rows(Table.NODE_PORTS) == []
