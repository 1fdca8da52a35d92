"""Roles and bindings over the API, written by somebody who is no administrator of everything."""

from typing import Any

import pytest

RBAC = "rbac.authorization.k8s.io"
BASE = f"/targets/root:edge/apis/{RBAC}/v1"
ROLES, BINDINGS = f"{BASE}/clusterroles", f"{BASE}/clusterrolebindings"
PODS = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}
WRITE = {"verbs": ["create", "update", "patch"], "apiGroups": [RBAC], "resources": ["*"]}


@pytest.fixture
def ann(api: Any) -> Any:
    """May write RBAC and read pods in the target."""

    def allow(*rules: Any) -> None:
        api.put(api.manifest(f"{RBAC}/v1 ClusterRole", "ann", cluster="target", rules=list(rules)), store=api.target)
        binding = api.manifest(
            f"{RBAC}/v1 ClusterRoleBinding", "ann", cluster="target",
            roleRef={"apiGroup": RBAC, "kind": "ClusterRole", "name": "ann"},
            subjects=[{"kind": "User", "apiGroup": RBAC, "name": "ann"}],
        )  # fmt: skip
        api.put(binding, store=api.target)

    allow(WRITE, PODS)
    return allow


def role(*rules: Any, name: str = "r", **more: Any) -> Any:
    return {"metadata": {"name": name}, "rules": list(rules), **more}


def binding(role_name: str, kind: str = "ClusterRole") -> Any:
    reference = {"apiGroup": RBAC, "kind": kind, "name": role_name}
    subjects = [{"kind": "User", "apiGroup": RBAC, "name": "bob"}]
    return {"metadata": {"name": "b"}, "roleRef": reference, "subjects": subjects}


def test_what_she_holds_she_may_grant(api: Any, run: Any, ann: Any) -> None:
    assert run(api.call("POST", ROLES, role(PODS), user="ann")).status == 201
    assert run(api.call("POST", BINDINGS, binding("r"), user="ann")).status == 201


def test_what_she_does_not_hold_she_may_not(api: Any, run: Any, ann: Any) -> None:
    wanted = {"verbs": ["get", "delete", "watch"], "apiGroups": [""], "resources": ["pods", "secrets"]}
    reply = run(api.call("POST", ROLES, role(wanted), user="ann"))
    assert (reply.status, reply.json["reason"]) == (403, "Forbidden")
    assert reply.message == (
        'clusterroles.rbac.authorization.k8s.io "r" is forbidden: user "ann" (groups=["system:authenticated"]) is '
        "attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["pods"], Verbs:["delete" "watch"]}\n'
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "delete" "watch"]}'
    )
    url = {"verbs": ["get"], "nonResourceURLs": ["/metrics"]}
    assert (
        '{NonResourceURLs:["/metrics"], Verbs:["get"]}' in run(api.call("POST", ROLES, role(url), user="ann")).message
    )
    # A dry run is told the same.
    assert run(api.call("POST", f"{ROLES}?dryRun=All", role(url), user="ann")).status == 403


def test_a_change_is_judged_and_other_changes_are_not(api: Any, run: Any, ann: Any) -> None:
    secrets = {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]}
    assert run(api.call("POST", ROLES, role(secrets))).status == 201
    merge = "application/merge-patch+json"
    held = {"metadata": {"finalizers": ["example.io/hold"]}}
    assert run(api.call("PATCH", f"{ROLES}/r", held, kind=merge, user="ann")).status == 200
    assert run(api.call("PATCH", f"{ROLES}/r", {"metadata": {"finalizers": []}}, kind=merge, user="ann")).status == 200
    patch = {"rules": [secrets, PODS]}
    reply = run(api.call("PATCH", f"{ROLES}/r", patch, kind=merge, user="ann"))
    assert (reply.status, "secrets" in reply.message) == (403, True)
    assert run(api.call("PUT", f"{ROLES}/r", role(PODS), user="ann")).status == 200
    applied = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", **role(secrets, name="new")}
    apply = "application/apply-patch+yaml"
    assert run(api.call("PATCH", f"{ROLES}/new?fieldManager=m", applied, kind=apply, user="ann")).status == 403


def test_a_label_grants_what_the_role_holds(api: Any, run: Any, ann: Any) -> None:
    """It makes the rules part of `edit`, and so of what anybody has who edits."""
    secrets = {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]}
    assert run(api.call("POST", ROLES, role(secrets))).status == 201
    labels = {"metadata": {"labels": {"rbac.authorization.k8s.io/aggregate-to-edit": "true"}}}
    reply = run(api.call("PATCH", f"{ROLES}/r", labels, kind="application/merge-patch+json", user="ann"))
    assert (reply.status, "permissions not currently held" in reply.message) == (403, True)


def test_a_binding_grants_what_its_role_holds(api: Any, run: Any, ann: Any) -> None:
    reply = run(api.call("POST", BINDINGS, binding("view"), user="ann"))
    assert (reply.status, "attempting to grant RBAC permissions not currently held" in reply.message) == (403, True)
    reply = run(api.call("POST", BINDINGS, binding("nope"), user="ann"))
    assert (reply.status, reply.message) == (404, 'clusterrolebindings.rbac.authorization.k8s.io "nope" not found')
    in_namespace = f"{BASE}/namespaces/default/rolebindings"
    assert run(api.call("POST", in_namespace, binding("edit"), user="ann")).status == 403
    reply = run(api.call("POST", in_namespace, binding("nope", "Role"), user="ann"))
    assert (reply.status, reply.message) == (404, 'rolebindings.rbac.authorization.k8s.io "nope" not found')
    assert run(api.call("POST", f"{BASE}/namespaces/default/roles", role(PODS), user="ann")).status == 201
    assert run(api.call("POST", in_namespace, binding("r", "Role"), user="ann")).status == 201


def test_bind_and_escalate_are_verbs(api: Any, run: Any, ann: Any) -> None:
    ann(WRITE, {"verbs": ["bind"], "apiGroups": [RBAC], "resources": ["clusterroles"], "resourceNames": ["view"]})
    assert run(api.call("POST", BINDINGS, binding("view"), user="ann")).status == 201
    assert run(api.call("POST", ROLES, role(PODS), user="ann")).status == 403
    ann(WRITE, {"verbs": ["escalate"], "apiGroups": [RBAC], "resources": ["clusterroles"]})
    assert run(api.call("POST", ROLES, role(PODS), user="ann")).status == 201


def test_aggregation_is_for_those_who_hold_everything(api: Any, run: Any, ann: Any) -> None:
    wanted = role(aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]})
    reply = run(api.call("POST", ROLES, wanted, user="ann"))
    assert "must have cluster-admin privileges to use the aggregationRule" in reply.message
    ann({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, {"verbs": ["*"], "nonResourceURLs": ["*"]})
    assert run(api.call("POST", ROLES, wanted, user="ann")).status == 201


def test_a_binding_keeps_its_role(api: Any, run: Any) -> None:
    assert run(api.call("POST", BINDINGS, binding("view"))).status == 201
    reply = run(api.call("PUT", f"{BINDINGS}/b", binding("edit")))
    assert (reply.status, "cannot change roleRef" in reply.message) == (422, True)


def test_an_administrator_of_everything_may(api: Any, run: Any) -> None:
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    assert run(api.call("POST", ROLES, role(everything))).status == 201
    assert run(api.call("POST", BINDINGS, binding("cluster-admin"))).status == 201
