"""What ann writes at home that names what is bea's: strategies for property tests."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from hypothesis import strategies as st
from support.borrowing import SCOPES, SYSTEM
from support.guesses import Known, either
from support.tenancy import URL
from support.tenants import APIS, GIFTS, RBAC, TENANCY, WIDGETS, Words, crd, export, resource_schema, thing

Object = dict[str, Any]

NAME = "n1"


def patches(known: Known) -> st.SearchStrategy[tuple[str, Any]]:
    """Media type and body."""
    uid, cluster = known.foreign.uids[0], known.foreign.clusters["root:bee"]
    owners = [{"apiVersion": "v1", "kind": "ConfigMap", "name": Words("p")("map"), "uid": uid, "controller": True}]
    merges: list[Any] = [
        {"metadata": {"ownerReferences": owners}}, {"metadata": {"annotations": {"kcp.io/cluster": cluster}}},
        {"metadata": {"annotations": {"kcp.io/path": "root:bee", "treeplane.dev/source-path": "workspaces/root/bee"}}},
        {"metadata": {"labels": {"a": "b"}}}, {"spec": {"ribbon": "blue"}}, {"data": {"x": "y"}},
        {"metadata": {"finalizers": ["a.io/b"]}}, {"metadata": {"name": Words("p")("map"), "namespace": "x"}},
        {"status": {"URL": f"{URL}/clusters/root:bee", "phase": "Ready"}},
        {"status": {"URL": f"{URL}/clusters/{cluster}", "phase": "Ready"}},
        {"status": {"URL": f"{URL}/clusters/root:none", "phase": "Ready"}},
        {"status": {"boundResources": [], "apiExportClusterName": cluster}}, {"spec": {"owner": {"cluster": cluster}}},
        {"status": {"initializers": [], "phase": "Ready"}},
        {"spec": {"cluster": cluster, "URL": f"{URL}/clusters/root:bee"}},
    ]  # fmt: skip
    media = [*["application/merge-patch+json"] * 3, "application/strategic-merge-patch+json", "application/json"]
    return st.tuples(st.sampled_from(media), st.sampled_from(merges))


Created = tuple[str, Object]
"""The collection that an object is sent to, below a workspace."""


def families(known: Known) -> list[list[Created]]:
    """Objects of every kind that may name what is another's, each with all that it may name."""
    return [*_taking(known), *_questions(known), *_rights(known)]


def creations(known: Known) -> st.SearchStrategy[Created]:
    def called(created: Created, name: str) -> Created:
        rest, obj = created
        return rest, {**obj, "metadata": {**obj["metadata"], "name": name}} if _is_named(obj) else obj

    some = either(*map(st.sampled_from, families(known)))
    return st.builds(called, some, st.sampled_from(["n1", "n2", Words("p")("map")]))


def each_once(known: Known) -> list[Created]:
    """All of them, under names of their own."""
    found = [created for family in families(known) for created in family]
    return [(rest, {**obj, "metadata": {**obj["metadata"], "name": f"n{number}"}} if _is_named(obj) else obj)
            for number, (rest, obj) in enumerate(found)]  # fmt: skip


def _is_named(obj: Object) -> bool:
    return bool((obj.get("metadata") or {}).get("name") == NAME)


def _taking(known: Known) -> Iterator[list[Created]]:
    """What takes something of another workspace's, or would."""
    word, theirs = Words("p"), known.foreign
    bee = theirs.clusters["root:bee"]
    paths = ("root:bee", bee, "root:none", "root:ann", "root:ann:made", f"root:bee:{word('child')}")
    types = (word("type"), "hers", "none", "gold")
    offered = {"group": f"{word('offer')}.example.io", "resource": f"{word('good')}s", "verbs": ["*"]}
    claims = [[{**offered, "identityHash": identity}] for identity in (*theirs.hashes, "0" * 64)]
    exports = list(product(paths, known.exports))

    def reference(path: str, name: str) -> Object:
        return {"reference": {"export": {"path": path, "name": name}}}

    bindings = [reference(*export) for export in exports]
    answered = [{**claim[0], "state": "Accepted", "selector": {"matchAll": True}} for claim in claims]
    bindings += [{**reference("root:ann", "gifts"), "permissionClaims": [claim]} for claim in answered]
    yield [(f"/apis/{APIS}/apibindings", thing(APIS, "APIBinding", NAME, spec=spec)) for spec in bindings]
    yield [(f"/apis/{APIS}/apiexports", export(GIFTS, NAME, permissionClaims=claim)) for claim in claims]
    slices, old = "apiexportendpointslices", "apis.kcp.io/v1alpha1"
    named = [{"export": {"path": path, "name": name}} for path, name in exports]
    yield [(f"/apis/{old}/{slices}", thing(old, "APIExportEndpointSlice", NAME, spec=spec)) for spec in named]
    made: list[Object] = [
        {"type": {"path": p, "name": t}} for p, t in product(("root:bee", "root:none", "root"), types)
    ]
    made.append({"mount": {"ref": {"apiVersion": "ann.example.io/v1", "kind": "Widget", "name": "w"}}})
    yield [(f"/apis/{TENANCY}/workspaces", thing(TENANCY, "Workspace", NAME, spec=spec)) for spec in made]
    stolen = [thing(TENANCY, "Workspace", NAME) for _ in range(2)]
    for each, uid in zip(stolen, theirs.uids, strict=False):
        each["metadata"]["uid"] = uid
    yield [(f"/apis/{TENANCY}/workspaces", each) for each in stolen]
    of_types: list[Object] = [{"extend": {"with": [{"path": p, "name": t}]}} for p, t in product(paths, types)]
    of_types += [{"defaultChildWorkspaceType": {"path": p, "name": t}} for p, t in product(paths, types)]
    of_types += [{"defaultAPIBindings": [{"path": p, "export": e}]} for p, e in exports]
    yield [(f"/apis/{TENANCY}/workspacetypes", thing(TENANCY, "WorkspaceType", NAME, spec=spec)) for spec in of_types]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": word("map"), "uid": theirs.uids[0]}
    belonging = thing("v1", "ConfigMap", NAME, annotations={"kcp.io/cluster": bee, "kcp.io/path": "root:bee"})
    belonging["metadata"]["ownerReferences"] = [owner]
    yield [("/api/v1/namespaces/default/configmaps", belonging)]
    kinds = [{**WIDGETS, "group": f"{word('group')}.example.io"}, {**WIDGETS, "group": "tenancy.kcp.io"},
             {**GIFTS, "group": "gifts.apis.kcp.io"}]  # fmt: skip
    yield [("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd(spec)) for spec in kinds]
    yield [(f"/apis/{old}/apiresourceschemas", resource_schema(spec)) for spec in (kinds[0], WIDGETS)]


def _questions(known: Known) -> Iterator[list[Created]]:
    """What is answered and not stored."""
    bee = known.foreign.clusters["root:bee"]
    secrets = {"resourceAttributes": {"verb": "list", "resource": "secrets", "namespace": Words("p")("space")}}
    extra = {SCOPES: ["cluster:root"], "authentication.kcp.io/cluster-name": [bee]}
    named = [
        {**secrets, "user": user, "groups": [group], "extra": extra} for user, group in product(_users(known), SYSTEM)
    ]
    asked: list[tuple[str, str, list[Object]]] = [
        ("authorization", "SubjectAccessReview", named),
        ("authorization", "SelfSubjectAccessReview", [secrets]),
        ("authorization", "SelfSubjectRulesReview", [{"namespace": "default"}]),
        ("authentication", "SelfSubjectReview", [{}]),
        ("authentication", "TokenReview", [{"token": token} for token in (known.robot, "x", "a.b.c")]),
    ]
    for group, kind, specs in asked:
        version = f"{group}.k8s.io/v1"
        yield [(f"/apis/{version}/{kind.lower()}s", {"apiVersion": version, "kind": kind, "spec": s}) for s in specs]
    audiences: list[list[str]] = [[], [bee], ["x"]]
    token = "/api/v1/namespaces/default/serviceaccounts/robot/token"
    yield [(token, {"kind": "TokenRequest", "spec": {"audiences": each}}) for each in audiences]


def _rights(known: Known) -> Iterator[list[Created]]:
    admin = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"}
    subjects = [{"apiGroup": RBAC, "kind": "User", "name": user} for user in _users(known)]
    yield [(f"/apis/{RBAC}/v1/clusterrolebindings",
            thing(f"{RBAC}/v1", "ClusterRoleBinding", NAME, roleRef=admin, subjects=[subject]))
           for subject in subjects]  # fmt: skip


def _users(known: Known) -> list[str]:
    return ["bea", "ann", f"system:kcp:serviceaccount:{known.foreign.clusters['root:bee']}:default:robot"]
