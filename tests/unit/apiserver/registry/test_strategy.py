"""What every object is made to be: metadata, defaults, errors, status, updates."""

from __future__ import annotations

import base64
import copy
from typing import Any

import pytest
from support.strategies import CRDS, TARGET, WORKSPACE, crd, deployment, errors, kind, named, prepared, template

from apiserver.model import marks
from apiserver.registry import kinds, names, strategy


def test_secret() -> None:
    obj = prepared("", "secrets", named(stringData={"a": "b"}, data={"c": "ZA=="}))
    assert obj["data"] == {"a": base64.b64encode(b"b").decode(), "c": "ZA=="}
    assert obj["type"] == "Opaque" and "stringData" not in obj


def test_secret_errors_never_show_the_value() -> None:
    found = strategy.prepare(kind("", "secrets"), named(data={"p": "hunter2!"}))
    assert found and not any("hunter2" in str(c) for c in found)
    assert errors("", "secrets", named(type="kubernetes.io/tls")) == {
        "data[tls.crt]": "Required value",
        "data[tls.key]": "Required value",
    }


def test_namespace_gets_label_finalizer_and_phase() -> None:
    obj = prepared("", "namespaces", named("prod", ""))
    assert obj["metadata"]["labels"] == {"kubernetes.io/metadata.name": "prod"}
    assert obj["spec"] == {"finalizers": ["kubernetes"]} and obj["status"] == {"phase": "Active"}


def test_metadata_errors_come_all_at_once() -> None:
    obj = named("A_b", "Bad", data={"a b": "c"})
    obj["metadata"]["labels"] = {"a/b/c": "x y"}
    obj["metadata"]["finalizers"] = ["mine"]
    found = errors("", "configmaps", obj)
    assert set(found) == {
        "metadata.name",
        "metadata.namespace",
        "metadata.labels",
        "metadata.finalizers[0]",
        "data[a b]",
    }
    assert found["metadata.name"].startswith('Invalid value: "A_b": a lowercase RFC 1123 subdomain must consist of')


def test_namespace_where_none_belongs_and_the_other_way_round() -> None:
    assert errors("", "namespaces", named("a", "default")) == {
        "metadata.namespace": "Forbidden: not allowed on this type"
    }
    assert errors("", "configmaps", named("a", "")) == {"metadata.namespace": "Required value"}


@pytest.mark.parametrize(
    ("values", "wrong"), [(["a", ""], []), (["a", "_b"], ["1"]), (["x" * 64, "%"], ["0", "1"])]
)  # fmt: skip
def test_values_of_a_selector_are_labels_values(values: list[str], wrong: list[str]) -> None:
    selector = {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": values}]}
    obj = named("a", "", spec={"dimensions": ["region"], "shardSelector": selector})
    found = errors("topology.kcp.io", "partitionsets", obj, "v1alpha1")
    assert set(found) == {f"spec.shardSelector.matchExpressions[0].values[{number}]" for number in wrong}
    assert all(text.startswith("Invalid value: ") for text in found.values())


def test_wrong_types_are_errors_not_crashes() -> None:
    assert "metadata" in errors("", "configmaps", {"metadata": "x"})
    assert errors("", "configmaps", {"metadata": {"name": "a", "namespace": "b", "labels": {"a": 1}}})
    assert errors("apps", "deployments", named(spec="x"))
    assert errors("apps", "deployments", named(spec={"template": {"spec": {"containers": "x"}}}))
    assert errors("rbac.authorization.k8s.io", "roles", named(rules=[1]))


@pytest.mark.parametrize("served", TARGET.all() + WORKSPACE.all(), ids=lambda k: f"{k.qualified}.{k.version}")
def test_no_kind_crashes_on_an_empty_object(served: kinds.ServedKind) -> None:
    strategy.prepare(served, {})
    strategy.prepare(served, {"metadata": None, "spec": None, "status": None})
    strategy.prepare(served, {"metadata": {"name": "a"}, "spec": {}, "data": {}, "rules": [], "subjects": []})


def test_unknown_fields_are_named_then_dropped() -> None:
    obj = deployment(nope=1)
    obj["metadata"]["nope"] = 1
    before = copy.deepcopy(obj)
    assert strategy.unknown_fields(kind("apps", "deployments"), obj) == ["metadata.nope", "spec.nope"]
    assert obj == before
    prepared("apps", "deployments", obj)
    assert "nope" not in obj["spec"] and "nope" not in obj["metadata"]
    workspace = named("w", "", spec={"nope": 1})
    workspace["metadata"]["x"] = 1
    served = kind("tenancy.kcp.io", "workspaces", "v1alpha1")
    assert strategy.unknown_fields(served, workspace) == ["metadata.x", "spec.nope"]


def test_nulls_in_metadata_are_absent() -> None:
    obj = named("w", "")
    obj["metadata"]["creationTimestamp"] = None
    assert prepared("tenancy.kcp.io", "workspaces", obj, "v1alpha1")["metadata"] == {"name": "w"}


def test_service_defaults_and_errors() -> None:
    spec = prepared("", "services", named(spec={"ports": [{"port": 80}]}))["spec"]
    assert spec["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    assert (spec["type"], spec["sessionAffinity"], spec["internalTrafficPolicy"]) == ("ClusterIP", "None", "Cluster")
    assert errors("", "services", named("a.b", spec={})) == {
        "metadata.name": 'Invalid value: "a.b": must not contain dots',
        "spec.ports": "Required value",
    }


def test_ingress_and_network_policy() -> None:
    assert errors("networking.k8s.io", "ingresses", named(spec={})) == {
        "spec": "Invalid value: null: either `defaultBackend` or `rules` must be specified"
    }
    spec = prepared("networking.k8s.io", "networkpolicies", named(spec={"podSelector": {}, "egress": [{}]}))["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]


def test_rbac() -> None:
    group = "rbac.authorization.k8s.io"
    binding = named("a:b", roleRef={"kind": "Role", "name": "r"}, subjects=[{"kind": "User", "name": "u"}])
    obj = prepared(group, "rolebindings", binding)
    assert obj["roleRef"]["apiGroup"] == obj["subjects"][0]["apiGroup"] == group
    assert errors(group, "roles", named(rules=[{"verbs": ["get"], "nonResourceURLs": ["/x"]}]))
    changed = copy.deepcopy(obj)
    changed["roleRef"]["name"] = "other"
    [cause] = strategy.prepare_update(kind(group, "rolebindings"), obj, changed)
    assert cause.field == "roleRef" and cause.message.endswith("cannot change roleRef")


def test_placement_and_sync_target() -> None:
    found = errors("scheduling.kcp.io", "placements", named("p", "", spec={"locationWorkspace": "Root/x"}), "v1alpha1")
    assert set(found) == {"spec.locationWorkspace"}
    obj = prepared("workload.kcp.io", "synctargets", named("t", "", spec={"connection": {"embedded": {}}}), "v1alpha1")
    assert obj["spec"]["supportedAPIExports"] == [{"export": "kubernetes"}]
    reference = {"kubeconfigSecretRef": {"name": "k"}}
    obj = prepared("workload.kcp.io", "synctargets", named("t", "", spec={"connection": reference}), "v1alpha1")
    assert obj["spec"]["connection"]["kubeconfigSecretRef"] == {
        "name": "k",
        "namespace": "default",
        "key": "kubeconfig",
    }
    both = {"embedded": {}, "kubeconfigSecretRef": {"name": "k"}}
    assert errors("workload.kcp.io", "synctargets", named("t", "", spec={"connection": both}), "v1alpha1")


def test_create_drops_what_the_server_sets() -> None:
    obj = deployment()
    obj["status"] = {"replicas": 5}
    annotations = {"treeplane.dev/source-path": "a", "kcp.io/cluster": "z", "mine": "1"}
    obj["metadata"] |= {"uid": "x", "resourceVersion": "1", "generation": 9, "annotations": annotations}
    assert strategy.prepare_create(kind("apps", "deployments"), obj) == []
    assert obj["status"] == {}
    assert obj["metadata"] == {"name": "a", "namespace": "default", "annotations": {"mine": "1"}}


def test_an_object_of_the_api_begins_with_the_status_of_its_schema_and_one_of_a_manifest_with_none() -> None:
    service = {"metadata": {"name": "a", "namespace": "default"}, "spec": {"ports": [{"port": 80}]}}
    served = kind("", "services")
    declared, created = copy.deepcopy(service), copy.deepcopy(service)
    assert strategy.prepare(served, declared) == []
    assert "status" not in declared
    assert strategy.prepare_create(served, created) == []
    assert created["status"] == {"loadBalancer": {}}


def stored(**more: Any) -> dict[str, Any]:
    obj = prepared("apps", "deployments", deployment())
    obj["metadata"] |= {"uid": "u", "generation": 3, "annotations": {"kcp.io/cluster": "c"}, "resourceVersion": "7"}
    obj["status"] = {"replicas": 1}
    return {**obj, **more}


def test_update_keeps_status_and_identity_and_counts_the_generation() -> None:
    served, old = kind("apps", "deployments"), stored()
    new = deployment(replicas=2)
    new["status"] = {"replicas": 9}
    assert strategy.prepare_update(served, old, new) == []
    assert new["status"] == {"replicas": 1}
    assert new["metadata"]["uid"] == "u" and new["metadata"]["generation"] == 4
    assert new["metadata"]["annotations"] == {"kcp.io/cluster": "c"} and "resourceVersion" not in new["metadata"]
    same = copy.deepcopy(old)
    same["metadata"]["labels"] = {"a": "b"}
    assert strategy.prepare_update(served, old, same) == [] and same["metadata"]["generation"] == 3


def test_no_client_says_which_cluster_a_placement_runs_on() -> None:
    placements = kind("scheduling.kcp.io", "placements", "v1alpha1")
    decision = {"internal.workload.kcp.io/synctarget": "stolen", "treeplane.dev/leaving": "stolen"}
    new: dict[str, Any] = {"metadata": {"name": "p", "annotations": {**decision, "mine": "x"}}, "spec": {}}
    assert strategy.prepare_create(placements, new) == []
    assert new["metadata"]["annotations"] == {"mine": "x"}
    decided = {**new, "metadata": {"name": "p", "annotations": {"internal.workload.kcp.io/synctarget": "key"}}}
    for sent in ({}, {"annotations": {**decision, "mine": "x"}}):
        changed = {**copy.deepcopy(decided), "metadata": {"name": "p", **sent}}
        assert strategy.prepare_update(placements, decided, changed) == []
        assert changed["metadata"]["annotations"].get("internal.workload.kcp.io/synctarget") == "key"
        assert "treeplane.dev/leaving" not in changed["metadata"]["annotations"]


def test_immutable_fields() -> None:
    new = deployment(selector={"matchLabels": {"app": "b"}})
    new["spec"]["template"]["metadata"]["labels"] = {"app": "b"}
    [cause] = strategy.prepare_update(kind("apps", "deployments"), stored(), new)
    assert cause.field == "spec.selector" and cause.message.endswith("field is immutable")
    old = prepared("", "configmaps", named(data={"a": "b"}, immutable=True))
    [cause] = strategy.prepare_update(kind("", "configmaps"), old, named(data={"a": "c"}, immutable=True))
    assert cause.field == "data" and "immutable" in cause.message


def test_a_bare_finalizer_is_an_error_of_builtins_and_a_warning_of_custom_resources() -> None:
    deployed = deployment()
    deployed["metadata"]["finalizers"] = ["mine"]
    [cause] = strategy.prepare_update(kind("apps", "deployments"), stored(), deployed)
    assert cause.message.endswith("name is neither a standard finalizer name nor is it fully qualified")
    served = kind("tenancy.kcp.io", "workspaces", "v1alpha1")
    old = prepared("tenancy.kcp.io", "workspaces", named("w", ""), "v1alpha1")
    new = named("w", "")
    new["metadata"]["finalizers"] = ["orphan", "mine", "example.io", "example.io/path"]
    assert strategy.prepare_update(served, old, new) == []
    first, second = strategy.warnings(served, old, new)
    assert first.startswith('metadata.finalizers: "example.io": prefer a domain-qualified finalizer name including a ')
    assert second.startswith('metadata.finalizers: "mine": prefer a domain-qualified finalizer name to avoid')
    assert strategy.warnings(served, new, new) == ()
    definition = {**crd(), "metadata": {"name": "widgets.example.io", "finalizers": ["mine"]}}
    assert strategy.prepare_create(kind(*CRDS), definition) == []


def test_no_finalizer_is_added_to_what_is_being_deleted() -> None:
    old = stored()
    old["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a.io/b"]}
    new = copy.deepcopy(old)
    new["metadata"]["finalizers"] = ["a.io/b", "a.io/c"]
    [cause] = strategy.prepare_update(kind("apps", "deployments"), old, new)
    assert cause.field == "metadata.finalizers" and '[]string{"a.io/c"}' in cause.message


def test_status_update_of_a_builtin_takes_status_and_annotations() -> None:
    new = deployment(replicas=8)
    new["metadata"]["annotations"] = {"x": "y"}
    new["status"] = {"replicas": 2}
    old = stored()
    assert strategy.prepare_status_update(kind("apps", "deployments"), old, new) == []
    assert new["spec"] == old["spec"] and new["status"] == {"replicas": 2}
    assert new["metadata"]["annotations"] == {"x": "y", "kcp.io/cluster": "c"}
    assert new["metadata"]["generation"] == 3


def test_status_update_of_a_custom_resource_takes_the_status_alone() -> None:
    served = kind("tenancy.kcp.io", "workspaces", "v1alpha1")
    old = prepared("tenancy.kcp.io", "workspaces", named("w", "", spec={"cluster": "abc"}), "v1alpha1")
    new = named("w", "", status={"phase": "Ready"})
    new["metadata"]["labels"] = {"a": "b"}
    assert strategy.prepare_status_update(served, old, new) == []
    assert new["status"] == {"phase": "Ready"} and new["spec"] == {"cluster": "abc"} and "labels" not in new["metadata"]


def test_what_a_stricter_schema_refuses_does_not_stand_in_the_way_of_a_change() -> None:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"maxLength": 1}}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    version["subresources"] = {"status": {}}
    spec = {"group": "example.io", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"}}
    [served] = kinds.kinds_of_crd({"spec": {**spec, "versions": [version]}})
    old = named("w", spec={"a": "long"})
    labelled = copy.deepcopy(old)
    labelled["metadata"]["labels"] = {"a": "b"}
    assert strategy.prepare_update(served, old, labelled) == []
    assert strategy.prepare_status_update(served, old, copy.deepcopy(old)) == []
    changed = named("w", spec={"a": "longer"})
    assert [cause.field for cause in strategy.prepare_update(served, old, changed)] == ["spec.a"]


def test_metadata_of_an_embedded_object_is_known_and_nothing_else_in_it() -> None:
    inner = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    named_alone = {**inner, "properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string"}}}}}
    listed = {"type": "array", "items": inner}
    spec = {"type": "object", "properties": {"template": named_alone, "list": listed}}
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    [served] = kinds.kinds_of_crd({"spec": {**crd()["spec"], "versions": [version]}})
    each = {"apiVersion": "v1", "kind": "Sub", "metadata": {"name": "n", "labels": {"a": "b"}, "nope": 1}, "more": 2}
    obj = named(spec={"template": copy.deepcopy(each), "list": [copy.deepcopy(each)]})
    assert strategy.unknown_fields(served, obj) == ["spec.list[0].metadata.nope", "spec.template.metadata.nope"]
    assert strategy.prepare(served, obj) == []
    kept = {**each, "metadata": {"name": "n", "labels": {"a": "b"}}}
    assert obj["spec"] == {"template": kept, "list": [kept]}


def test_generated_names() -> None:
    made = names.generate("x" * 80)
    assert len(made) == 63 and made.startswith("x" * 58)
    assert names.dns_subdomain(names.generate("pod-")) == []


@pytest.mark.parametrize(("check", "good", "bad"), [
    (names.dns_label, ["a", "a-1"], ["", "A", "a.b", "-a", "a" * 64]),
    (names.dns_subdomain, ["a.b"], ["a..b", "a_b"]),
    (names.dns_1035, ["a1"], ["1a"]),
    (names.path_segment, ["system:node", "A b"], ["..", "a/b", "a%b"]),
    (names.qualified_name, ["a", "a.b/C_d"], ["", "a/b/c", "/a", "a/", "a b"]),
    (names.label_value, ["", "a.B"], ["-a", "a b"]),
    (names.data_key, ["A_b.c", ".a"], ["", ".", "..", "..a", "a/b"]),
])  # fmt: skip
def test_name_rules(check: names.Check, good: list[str], bad: list[str]) -> None:
    assert [g for g in good if check(g)] == [] and [b for b in bad if not check(b)] == []


def test_a_node_is_created_with_its_status_and_nothing_else_is() -> None:
    node = named(namespace="", status={"capacity": {"memory": "1024Mi"}})
    assert strategy.prepare_create(kind("", "nodes"), node) == []
    assert node["status"]["capacity"] == {"memory": "1Gi"}
    made = {**deployment(), "status": {"readyReplicas": 1}}
    assert strategy.prepare_create(kind("apps", "deployments"), made) == []
    assert "readyReplicas" not in made["status"]


def test_what_go_leaves_out_of_json_is_left_out() -> None:
    container = {"name": "c", "image": "x", "args": [], "env": [{"name": "E", "value": ""}], "stdin": False}
    bare = template(hostNetwork=False, nodeSelector={}, volumes=[{"name": "v", "emptyDir": {}}], containers=[container])
    made = prepared("apps", "deployments", deployment(template=bare, replicas=0, paused=False, minReadySeconds=0))
    spec = made["spec"]["template"]["spec"]
    assert "paused" not in made["spec"] and "minReadySeconds" not in made["spec"]
    assert made["spec"]["replicas"] == 0  # a pointer in Go
    assert "hostNetwork" not in spec and "nodeSelector" not in spec
    assert spec["volumes"] == [{"name": "v", "emptyDir": {}}]
    assert not {"args", "stdin"} & spec["containers"][0].keys()
    assert spec["containers"][0]["env"] == [{"name": "E"}]
    assert "data" not in prepared("", "configmaps", named(data={}, binaryData={}))
    assert prepared("", "configmaps", named(data={"a": ""}))["data"] == {"a": ""}


def quota(**spec: Any) -> list[str]:
    causes = strategy.prepare_create(kind("", "resourcequotas"), named("q", spec=spec))
    return [f"{cause.field}: {cause.message.partition(': ')[2].rpartition(': ')[2]}" for cause in causes]


def test_scopes_of_a_quota() -> None:
    def selecting(scope: str, operator: str, *values: str) -> dict[str, Any]:
        return {"matchExpressions": [{"scopeName": scope, "operator": operator, "values": list(values)}]}

    path = "spec.scopeSelector.matchExpressions"
    assert quota(hard={"pods": "1"}, scopes=["BestEffort"]) == []
    assert quota(scopeSelector=selecting("PriorityClass", "In", "high")) == []
    assert quota(scopes=["Nope"]) == ["spec.scopes: unsupported scope"]
    assert quota(hard={"cpu": "1"}, scopes=["BestEffort"]) == ["spec.scopes: unsupported scope applied to resource"]
    assert quota(scopes=["Terminating", "NotTerminating"]) == ["spec.scopes: conflicting scopes"]
    assert quota(scopeSelector=selecting("Nope", "Exists")) == [f"{path}.scopeName: unsupported scope"]
    assert quota(scopeSelector=selecting("BestEffort", "In", "x"))[0].startswith(f"{path}.operator: must be 'Exists'")
    assert quota(scopeSelector=selecting("PriorityClass", "In"))[0].startswith(f"{path}.values: must be at least one")
    assert quota(scopeSelector=selecting("PriorityClass", "Exists", "x"))[0].startswith(f"{path}.values: must be no")
    assert quota(scopeSelector=selecting("PriorityClass", "x")) == [f"{path}.operator: not a valid selector operator"]
    old, new = (named("q", spec={"scopes": scopes}) for scopes in (["BestEffort"], ["Terminating"]))
    [cause] = strategy.prepare_update(kind("", "resourcequotas"), old, new)
    assert (cause.field, cause.message.endswith("field is immutable")) == ("spec.scopes", True)


def test_finalizers_of_a_namespaces_spec_are_qualified() -> None:
    new = named("n", "", spec={"finalizers": ["kubernetes", "a.io/b", "mine"]})
    old = named("n", "", spec={"finalizers": ["kubernetes"]})
    [cause] = strategy.prepare_finalize(kind("", "namespaces"), old, new)
    assert cause.field == "spec.finalizers[2]"


def test_a_decision_is_nobodys_to_write_but_the_servers() -> None:
    """A Placement that names the key of somebody's cluster would run there, whoever may use it."""
    placement = kind("scheduling.kcp.io", "placements", "v1alpha1")
    invented = {marks.SYNC_TARGET: "thekeyofanothers", marks.LEAVING: "a,b", "mine": "x"}
    new = named("prod", "", spec={"locationSelectors": [{}], "namespaceSelector": {}})
    new["metadata"]["annotations"] = dict(invented)
    assert strategy.prepare_create(placement, new) == []
    assert new["metadata"]["annotations"] == {"mine": "x"}
    old = copy.deepcopy(new)
    old["metadata"]["annotations"] = {marks.SYNC_TARGET: "decided", "mine": "x"}
    for prepare in (strategy.prepare_update, strategy.prepare_status_update):
        sent = copy.deepcopy(old)
        sent["metadata"]["annotations"] = dict(invented)
        assert prepare(placement, old, sent) == []
        assert sent["metadata"]["annotations"] == {marks.SYNC_TARGET: "decided", "mine": "x"}
