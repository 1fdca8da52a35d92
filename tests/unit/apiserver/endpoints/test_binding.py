"""Who may take another workspace's API, by every way in which an APIBinding is written.

root:shop offers `widgets`. root:lab, where writes are commits, would have it: ann is its administrator. Whether she is
let through is seen in dry runs, since nobody commits here.
"""

from __future__ import annotations

from typing import Any

import pytest
from support.shipped import WORKLOAD, bound

LAB = "labcluster000000"
PATH = "/clusters/root:lab/apis/apis.kcp.io/v1alpha1/apibindings"
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
EVERYTHING = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
BIND = {"verbs": ["bind"], "apiGroups": ["apis.kcp.io"], "resources": ["apiexports"], "resourceNames": ["widgets"]}
REFUSED = "no permission to bind to export "


@pytest.fixture
def lab(api: Any) -> Any:
    api.put_workspace("root:lab", LAB, directory="workspaces/root/lab", writes="Commit")
    api.put(
        api.manifest("v1 Namespace", "default", cluster=LAB),
        api.manifest("apis.kcp.io/v1alpha1 APIExport", "widgets", cluster=api.SHOP, spec={}),
        api.manifest("apis.kcp.io/v1alpha1 APIExport", "gadgets", cluster=api.SHOP, spec={}),
        api.manifest(
            "apis.kcp.io/v1alpha1 APIExport", "shipped", spec={}, annotations={"treeplane.dev/origin": "system"}
        ),
    )
    api.allow("ann", EVERYTHING, cluster=LAB)
    return api


def grant(api: Any, *subjects: dict[str, str], rule: Any = BIND, cluster: str = "") -> None:
    """In root:shop, without access to it."""
    cluster = cluster or api.SHOP
    group = "rbac.authorization.k8s.io"
    role = {"apiGroup": group, "kind": "ClusterRole", "name": "granted"}
    listed = [{"apiGroup": group, **s} for s in subjects]
    api.put(
        api.manifest(f"{group}/v1 ClusterRole", "granted", cluster=cluster, rules=[rule]),
        api.manifest(f"{group}/v1 ClusterRoleBinding", "granted", cluster=cluster, roleRef=role, subjects=listed),
    )


def user(name: str) -> dict[str, str]:
    return {"kind": "User", "name": name}


def binding(export: str = "widgets", path: str = "root:shop", **metadata: Any) -> Any:
    reference = {"export": {"path": path, "name": export}}
    return {
        "apiVersion": "apis.kcp.io/v1alpha1",
        "kind": "APIBinding",
        "metadata": metadata or {"name": "b"},
        "spec": {"reference": reference},
    }


WAYS: list[tuple[str, str, str, Any]] = [
    ("POST", PATH, "", binding()),
    ("POST", PATH, "", binding(generateName="b-")),
    ("PATCH", f"{PATH}/b?fieldManager=m", APPLY, binding()),
]


@pytest.mark.parametrize(("method", "path", "kind", "body"), WAYS, ids=["create", "generateName", "apply"])
@pytest.mark.parametrize("dry", ["", "dryRun=All"])
def test_who_may_not_bind_is_refused(
    lab: Any, run: Any, method: str, path: str, kind: str, body: Any, dry: str
) -> None:
    path += ("&" if "?" in path else "?") + dry if dry else ""
    reply = run(lab.call(method, path, body, kind=kind, user="ann"))
    assert (reply.status, reply.json["reason"]) == (403, "Forbidden")
    assert reply.message.endswith(f"is forbidden: unable to create APIBinding: {REFUSED}root:shop:widgets")
    grant(lab, user("ann"))
    dry_run = path if dry else path + ("&" if "?" in path else "?") + "dryRun=All"
    assert run(lab.call(method, dry_run, body, kind=kind, user="ann")).status == 201


def test_what_is_not_there_and_what_is_not_hers_are_one_answer(lab: Any, run: Any) -> None:
    told = set()
    for export, path in (("widgets", "root:shop"), ("nothing", "root:shop"), ("widgets", "root:nowhere")):
        reply = run(lab.call("POST", PATH, binding(export, path), user="ann"))
        told.add((reply.status, reply.message.replace(f"{path}:{export}", "it")))
    assert len(told) == 1
    grant(lab, user("ann"))
    reply = run(lab.call("POST", f"{PATH}?dryRun=All", binding("gadgets"), user="ann"))
    assert (reply.status, reply.message.endswith(f"{REFUSED}root:shop:gadgets")) == (403, True), "by name"


def test_an_export_of_ones_own_workspace_is_judged_there(lab: Any, run: Any) -> None:
    lab.put(lab.manifest("apis.kcp.io/v1alpha1 APIExport", "own", cluster=LAB, spec={}))
    own = binding("own", "")
    assert run(lab.call("POST", f"{PATH}?dryRun=All", own, user="ann")).status == 201
    write = {"verbs": ["create"], "apiGroups": ["apis.kcp.io"], "resources": ["apibindings"]}
    lab.allow("bob", write, cluster=LAB)
    reply = run(lab.call("POST", f"{PATH}?dryRun=All", own, user="bob"))
    assert (reply.status, reply.message.endswith(f"{REFUSED}root:lab:own")) == (403, True)


def test_what_ships_is_everybodys_and_administrators_name_what_is_to_come(lab: Any, run: Any) -> None:
    assert run(lab.call("POST", f"{PATH}?dryRun=All", binding("shipped", "root"), user="ann")).status == 201
    assert run(lab.call("POST", f"{PATH}?dryRun=All", binding("later", "root:later"))).status == 201


@pytest.fixture
def stored(lab: Any) -> Any:
    """An APIBinding to `widgets`, which has taken nothing yet."""

    def put(**status: Any) -> None:
        declared = {"treeplane.dev/source-path": "workspaces/root/lab/b.yaml"}
        spec = binding()["spec"]
        lab.put(
            lab.manifest(
                "apis.kcp.io/v1alpha1 APIBinding", "b", "", LAB, annotations=declared, spec=spec, status=status
            )
        )

    put()
    return put


CHANGES: list[tuple[str, str, Any]] = [
    ("PUT", "", binding("gadgets", name="b")),
    ("PATCH", MERGE, {"spec": {"reference": {"export": {"name": "gadgets"}}}}),
    ("PATCH", "application/json-patch+json",
     [{"op": "replace", "path": "/spec/reference/export/name", "value": "gadgets"}]),
    ("PATCH", APPLY, binding("gadgets", name="b")),
]  # fmt: skip


@pytest.mark.parametrize(("method", "kind", "body"), CHANGES, ids=["put", "merge", "json", "apply"])
def test_another_reference_is_bound_anew(lab: Any, run: Any, stored: Any, method: str, kind: str, body: Any) -> None:
    if method == "PUT":
        body["metadata"]["resourceVersion"] = run(lab.get(f"{PATH}/b")).json["metadata"]["resourceVersion"]
    path = f"{PATH}/b?fieldManager=m" + ("&force=true" if kind == APPLY else "")
    grant(lab, user("ann"))
    reply = run(lab.call(method, path, body, kind=kind, user="ann"))
    assert reply.status == 403
    assert reply.message.endswith(f"unable to update APIBinding: {REFUSED}root:shop:gadgets")
    grant(lab, user("ann"), rule={**BIND, "resourceNames": ["gadgets"]})
    assert run(lab.call(method, f"{path}&dryRun=All", body, kind=kind, user="ann")).status == 200


def test_what_is_bound_keeps_its_reference(lab: Any, run: Any, stored: Any) -> None:
    stored(boundResources=[{"group": "example.io", "resource": "widgets", "schema": {"name": "s"}}])
    change = {"spec": {"reference": {"export": {"name": "gadgets"}}}}
    for who in ({"user": "ann"}, {}):  # of the export that would be taken nobody is told anything
        reply = run(lab.call("PATCH", f"{PATH}/b", change, kind=MERGE, **who))
        assert (reply.status, "APIExport reference must not be changed" in reply.message) == (422, True)


def test_what_leaves_the_reference_alone_needs_no_bind(lab: Any, run: Any, stored: Any) -> None:
    change = {"metadata": {"labels": {"a": "b"}}}
    assert run(lab.call("PATCH", f"{PATH}/b?dryRun=All", change, kind=MERGE, user="ann")).status == 200


def test_borrowed_names_do_not_bind(lab: Any, run: Any) -> None:
    """ann may impersonate anybody in root:lab, and is nobody else in root:shop."""
    grant(lab, user("bob"), {"kind": "Group", "name": "owners"})
    lab.allow("bob", EVERYTHING, cluster=LAB)
    for headers in ({"impersonate_user": "bob"}, {"impersonate_user": "ann", "impersonate_group": "owners"}):
        reply = run(lab.call("POST", f"{PATH}?dryRun=All", binding(), user="ann", **headers))
        assert (reply.status, REFUSED in reply.message) == (403, True)
    assert run(lab.call("POST", f"{PATH}?dryRun=All", binding(), user="bob")).status == 201
    # Whoever may be anybody anywhere lends what they have everywhere.
    assert run(lab.call("POST", f"{PATH}?dryRun=All", binding(), impersonate_user="bob")).status == 201


def account(api: Any, run: Any, cluster: str, path: str) -> str:
    """A token of the ServiceAccount `robot` of a workspace."""
    api.put(api.manifest("v1 ServiceAccount", "robot", "default", cluster))
    url = f"/clusters/{path}/api/v1/namespaces/default/serviceaccounts/robot/token"
    reply = run(api.call("POST", url, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}))
    token: str = reply.json["status"]["token"]
    return token


def test_service_accounts_bind_under_their_full_names(lab: Any, run: Any) -> None:
    token = account(lab, run, LAB, "root:lab")
    lab.allow("system:serviceaccount:default:robot", EVERYTHING, cluster=LAB)
    # The local account of the same name over there is another.
    grant(lab, user("system:serviceaccount:default:robot"))
    assert run(lab.call("POST", f"{PATH}?dryRun=All", binding(), user=token)).status == 403
    grant(lab, user(f"system:kcp:serviceaccount:{LAB}:default:robot"))
    assert run(lab.call("POST", f"{PATH}?dryRun=All", binding(), user=token)).status == 201


def test_a_service_account_has_its_own_rights_at_home(lab: Any, run: Any) -> None:
    """One of root:shop that was let into root:lab."""
    token = account(lab, run, lab.SHOP, "root:shop")
    lab.allow(f"system:kcp:serviceaccount:{lab.SHOP}:default:robot", EVERYTHING, cluster=LAB)
    assert run(lab.call("POST", f"{PATH}?dryRun=All", binding(), user=token)).status == 403
    grant(lab, user("system:serviceaccount:default:robot"))
    assert run(lab.call("POST", f"{PATH}?dryRun=All", binding(), user=token)).status == 201


def test_a_workspace_type_brings_what_its_writer_may_bind(lab: Any, run: Any) -> None:
    types = "/clusters/root:lab/apis/tenancy.kcp.io/v1alpha1/workspacetypes?dryRun=All"

    def kind(**spec: Any) -> Any:
        return {
            "apiVersion": "tenancy.kcp.io/v1alpha1",
            "kind": "WorkspaceType",
            "metadata": {"name": "t"},
            "spec": spec,
        }

    brings = kind(defaultAPIBindings=[{"path": "root:shop", "export": "widgets"}])
    reply = run(lab.call("POST", types, brings, user="ann"))
    assert (reply.status, reply.message.endswith(f"{REFUSED}root:shop:widgets")) == (403, True)
    grant(lab, user("ann"))
    assert run(lab.call("POST", types, brings, user="ann")).status == 201
    # What is yet to come is named by whoever may bind it by its name.
    later = kind(defaultAPIBindings=[{"path": "root:shop", "export": "later"}])
    assert run(lab.call("POST", types, later, user="ann")).status == 403
    grant(lab, user("ann"), rule={**BIND, "resourceNames": ["later"]})
    assert run(lab.call("POST", types, later, user="ann")).status == 201
    assert run(lab.call("POST", types, brings, user="ann")).status == 403
    nowhere = kind(defaultAPIBindings=[{"path": "root:nowhere", "export": "later"}])
    assert run(lab.call("POST", types, nowhere, user="ann")).status == 403
    # Nor by way of somebody else's type.
    lab.put(lab.manifest("tenancy.kcp.io/v1alpha1 WorkspaceType", "theirs", cluster=lab.SHOP, spec={}))
    told = set()
    for name in ("theirs", "nothing"):
        for spec in ({"extend": {"with": [{"name": name, "path": "root:shop"}]}},
                     {"defaultChildWorkspaceType": {"name": name, "path": "root:shop"}}):  # fmt: skip
            reply = run(lab.call("POST", types, kind(**spec), user="ann"))
            told.add((reply.status, reply.message.replace(name, "it")))
    [(status, message)] = told
    assert (status, "missing verb='use' permission on workspacetype" in message) == (403, True)
    grant(lab, user("ann"), rule={"verbs": ["use"], "apiGroups": ["tenancy.kcp.io"], "resources": ["workspacetypes"]})
    extends = kind(extend={"with": [{"name": "theirs", "path": "root:shop"}]})
    assert run(lab.call("POST", types, extends, user="ann")).status == 201


def test_a_sync_target_tells_nothing_of_exports_that_are_not_its_owners(lab: Any, run: Any) -> None:
    lab.put(*bound(LAB, WORKLOAD))
    targets = "/clusters/root:lab/apis/workload.kcp.io/v1alpha1/synctargets?dryRun=All"

    def target(*exports: Any) -> Any:
        spec = {"supportedAPIExports": list(exports)} if exports else {}
        return {"apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget", "metadata": {"name": "t"}, "spec": spec}

    assert run(lab.call("POST", targets, target(), user="ann")).status == 201
    theirs = target({"path": "root:shop", "export": "widgets"})
    reply = run(lab.call("POST", targets, theirs, user="ann"))
    assert (reply.status, reply.message.endswith(f"{REFUSED}root:shop:widgets")) == (403, True)
    grant(lab, user("ann"))
    assert run(lab.call("POST", targets, theirs, user="ann")).status == 201
