"""Which world answers, to whom, and what is said where none can."""

import gc
import tracemalloc
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from apiserver.model.commits import own
from apiserver.registry import tree

RBAC_ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
READ = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["configmaps"]}


def test_while_the_fleet_is_loading_unknown_is_not_absent(api: Any, run: Any) -> None:
    api.put_fleet(loaded=False, done=3, total=9)
    reply = run(api.get("/clusters/root:new/api/v1/configmaps"))
    assert (reply.status, reply.headers["retry-after"]) == (503, "1")
    assert "3 of 9" in reply.message
    assert run(api.get("/clusters/*/api/v1/configmaps")).status == 503
    assert run(api.get("/targets/root:nope/api/v1/configmaps")).status == 503
    assert run(api.get("/clusters/root:shop/api/v1/configmaps")).status == 200


def test_afterwards_it_is(api: Any, run: Any) -> None:
    for path in ("/clusters/root:new/api", "/clusters/Nope/api", "/clusters/Root:a/api", "/targets/root:nope/api"):
        reply = run(api.get(path))
        assert (reply.status, reply.json["reason"]) == (404, "NotFound"), path


NO_CLUSTER = "/clusters/nosuchcluster000"
CONFIGMAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
MASTERS_AS_KCP_ADMIN = {"impersonate_user": "a", "impersonate_group": "system:kcp:admin"}


def test_a_logical_cluster_that_is_not_there_is_an_empty_one_to_masters(api: Any, run: Any) -> None:
    assert run(api.get(f"{NO_CLUSTER}/api/v1/configmaps")).json["items"] == []
    assert run(api.get(f"{NO_CLUSTER}/apis/tenancy.kcp.io/v1alpha1/workspaces")).json["items"] == []
    assert run(api.get(f"{NO_CLUSTER}/api/v1/namespaces/default/configmaps/a")).status == 404
    assert run(api.get(f"{NO_CLUSTER}/api")).status == 200
    before = api.store.revision()
    for method, path in (("POST", "configmaps"), ("DELETE", "configmaps"), ("DELETE", "configmaps/a")):
        reply = run(api.call(method, f"{NO_CLUSTER}/api/v1/namespaces/default/{path}", CONFIGMAP))
        assert reply.status == 403
        assert 'there is no logical cluster "nosuchcluster000"' in reply.message
    assert api.store.revision() == before


@pytest.mark.parametrize("world", ["/clusters/root:none", NO_CLUSTER, "/clusters/system:admin", "/clusters/~"])
@pytest.mark.parametrize("path", ["/api/v1/configmaps", "/api", RBAC_ROLES, "/version"])
def test_nobody_but_masters_sees_what_is_not_there(api: Any, run: Any, world: str, path: str) -> None:
    """Not even who administers every workspace, whoever asks on their behalf: it answers as what is forbidden does."""
    forbidden = run(api.get(f"/clusters/root:shop{path}", user="ann"))
    assert forbidden.status == 403
    assert run(api.get(f"{world}{path}", user="ann")) == forbidden
    as_admin = run(api.get(f"{world}{path}", **MASTERS_AS_KCP_ADMIN))
    assert as_admin.status == 403
    assert as_admin.body == forbidden.body.replace(b'\\"ann\\"', b'\\"a\\"')
    assert run(api.call("POST", f"{world}/api/v1/namespaces/default/configmaps", CONFIGMAP,
                        **MASTERS_AS_KCP_ADMIN)).status == 403  # fmt: skip


def test_who_lacks_a_required_group_is_told_what_outsiders_are(api: Any, run: Any) -> None:
    api.put_workspace("root:org", "orgcluster000000", directory="workspaces/root/org")
    api.put_workspace("root:org:team", "teamcluster00000", directory="workspaces/root/org/team")
    api.allow("ann", READ, cluster="teamcluster00000")
    path = "/api/v1/namespaces/default/configmaps"
    assert run(api.get(f"/clusters/root:org:team{path}", user="ann")).status == 200
    said = {"authorization.kcp.io/required-groups": "devs"}
    kind = "core.kcp.io/v1alpha1 LogicalCluster"
    api.put(api.manifest(kind, "cluster", cluster="orgcluster000000", annotations=said, spec={}))
    for asked in (path, "/api", "/version", RBAC_ROLES):
        for world in ("root:org:team", "teamcluster00000"):
            answer = run(api.get(f"/clusters/{world}{asked}", user="ann"))
            assert answer.status == 403
            assert answer == run(api.get(f"/clusters/root:none{asked}", user="ann"))
    devs = {"impersonate_user": "ann", "impersonate_group": "devs"}
    assert run(api.get(f"/clusters/root:org:team{path}", **devs)).status == 200
    # Nobody borrows a group of a workspace that does not let them in.
    assert run(api.get(f"/clusters/root:org:team{path}", user="ann", **devs)).status == 403


def test_what_is_in_force_everywhere_is_shown_to_masters(api: Any, run: Any) -> None:
    listed = run(api.get(f"/clusters/system:admin{RBAC_ROLES}")).json["items"]
    names = {item["metadata"]["name"] for item in listed}
    assert {"cluster-admin", "system:kcp:workspace:access", "system:kcp:metrics-reader"} <= names
    assert {item["metadata"]["annotations"]["kcp.io/cluster"] for item in listed} == {"system:admin"}
    bindings = "/clusters/system:admin/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    found = run(api.get(f"{bindings}/system:kcp:admin:cluster-admin")).json
    assert found["roleRef"]["name"] == "cluster-admin"
    assert found["subjects"][0]["name"] == "system:kcp:admin"
    table = run(api.get(bindings, accept="application/json;as=Table;v=v1;g=meta.k8s.io")).json
    assert table["rows"]
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "mine"}}
    reply = run(api.call("POST", f"/clusters/system:admin{RBAC_ROLES}", role))
    assert (reply.status, "ships with the server" in reply.message) == (403, True)
    assert run(api.get("/clusters/system:admin/api/v1/namespaces")).json["items"] == []


def test_a_workspace_without_a_good_commit_says_why_to_those_who_may_read(api: Any, run: Any) -> None:
    reply = run(api.get("/clusters/root:broken/api/v1/configmaps"))
    assert reply.status == 503
    assert "workspaces/root/broken/a.yaml:3: bad" in reply.message


def test_kubectl_does_not_wait_for_a_workspace_that_needs_a_commit(api: Any, run: Any) -> None:
    """It asks again where it is told when to, ten times for discovery; of an error there it shows warnings only."""
    assert run(api.get("/clusters/root:broken/api/v1/configmaps")).headers["retry-after"] == "5"
    reply = run(api.get("/clusters/root:broken/api"))
    assert (reply.status, "retry-after" in reply.headers) == (503, False)
    assert "workspaces/root/broken/a.yaml:3: bad" in reply.headers["warning"]
    assert run(api.get("/clusters/root:broken/version")).status == 200


HIDDEN = ["/clusters/root:shop", "/clusters/shopcluster00000", "/clusters/root:broken", "/targets/root:edge"]
"""There, and not for outsiders."""
ABSENT = ["/clusters/root:none", "/clusters/nosuchcluster000", "/clusters/root:shop:none", "/targets/root:none"]
ASKED = [
    "", "/", "/api", "/apis", "/apis/apps", "/apis/nonsense/v1", "/version", "/openapi/v2", "/openapi/v3",
    "/readyz", "/readyz?verbose", "/livez/ping", "/livez/nonsense", "/healthz/poststarthook/bootstrap-controller",
    "/.well-known/openid-configuration", "/openid/v1/jwks", "/api/v1/configmaps",
    "/api/v1/namespaces/default/configmaps/s", "/api/v1/configmaps?watch=1", "/api/v1/watch/configmaps",
    "/api/v1/nonsense", "/api/v1/namespaces/default/pods/a/log",
    "/apis/workload.kcp.dev/v1alpha1/synctargets", "/nonsense", "/apis/tenancy.kcp.io/v1alpha1/workspaces",
]  # fmt: skip


@pytest.mark.parametrize("loaded", [True, False])
@pytest.mark.parametrize("asked", ASKED)
def test_nothing_tells_an_outsider_what_there_is(api: Any, run: Any, asked: str, loaded: bool) -> None:
    """Status, headers and body are the same, whoever asks and however; and administrators are told."""
    api.put_fleet(loaded=loaded)
    api.put_workspace("root:old", "oldcluster000000", leaves=True)
    api.allow("insider", {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, cluster=api.SHOP)
    ways: list[dict[str, str]] = [
        {},
        {"impersonate_user": "insider"},
        {"impersonate_user": "x", "impersonate_group": "system:masters"},
    ]
    for method in ("GET", "HEAD", "POST", "DELETE", "OPTIONS"):
        for way in ways:
            worlds = (*HIDDEN, "/clusters/root:old", *ABSENT)
            first, *others = [run(api.call(method, f"{world}{asked}", user="ann", **way)) for world in worlds]
            assert all(answer == first for answer in others), (method, way, first, others)
            assert first.status in ({200, 404, 500} if "z" in asked else set()) | {403, 405, 503}
    if loaded and asked == "/api":
        assert run(api.get(f"{ABSENT[0]}/api")).status == 404
        assert run(api.get(f"{HIDDEN[0]}/api", user="insider")).status == 200


def test_an_outsider_costs_as_many_looks_into_the_store(api: Any, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that time does not tell either."""
    counts = []
    for world in (*HIDDEN[:3], *ABSENT[:3]):
        run(api.get(f"{world}/api", user="ann"))  # what is remembered is there for both
        with monkeypatch.context() as patch:
            looks = [counted(patch, api.store, name) for name in ("get", "scan", "changes", "get_many")]
            run(api.get(f"{world}/api", user="ann"))
        counts.append(sum(map(len, looks)))
    assert max(counts) - min(counts) <= 2, counts  # of two microseconds each


def test_nor_does_the_first_time_that_it_is_asked_for(api: Any, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the rights in a workspace are made of is looked up once, and so it is where there is none."""
    run(api.get("/clusters/root/api", user="ann"))
    for world in ("/clusters/root:shop", "/clusters/root:none", "/clusters/root:none:too", "/clusters/never0000000000"):
        for expected in (1, 0):
            with monkeypatch.context() as patch:
                looks = counted(patch, api.store, "view")
                run(api.get(f"{world}/api", user="ann"))
            assert len(looks) == expected, world


def test_names_that_are_made_up_take_nobodys_place(api: Any, run: Any) -> None:
    run(api.get("/clusters/root:shop/api", user="ann"))
    authorizer = api.app._realms.main.authorizer
    for number in range(1100):
        run(api.get(f"/clusters/root:none{number}/api", user="ann"))
    assert len(authorizer._absent) <= 1024
    assert set(authorizer._policies) == {api.SHOP}


def counted(patch: pytest.MonkeyPatch, store: Any, name: str) -> list[Any]:
    """The calls of a method from now on."""
    calls: list[Any] = []
    real = getattr(store, name)
    patch.setattr(store, name, lambda *args, **more: calls.append(args) or real(*args, **more))
    return calls


def test_a_workspace_whose_load_is_under_way(api: Any, run: Any) -> None:
    api.put_workspace("root:slow", "slow000000000000", served=False)
    reply = run(api.get("/clusters/root:slow/api/v1/configmaps"))
    assert (reply.status, reply.headers["retry-after"]) == (503, "1")
    api.put_workspace("root:slow", "slow000000000000")
    assert run(api.get("/clusters/root:slow/api/v1/configmaps")).json["items"] == []


def test_rights_are_of_one_workspace(api: Any, run: Any) -> None:
    api.allow("ann", READ)
    assert run(api.get("/api/v1/namespaces/default/configmaps/a", user="ann")).status == 200
    refused = run(api.get("/api/v1/namespaces/default/secrets/a", user="ann"))
    assert refused.status == 403
    assert refused.message == (
        'secrets "a" is forbidden: User "ann" cannot get resource "secrets" in API group "" in the namespace '
        '"default": access denied'
    )
    elsewhere = run(api.get("/clusters/root:shop/api/v1/configmaps", user="ann"))
    assert (elsewhere.status, elsewhere.json["reason"]) == (403, "Forbidden")


@pytest.mark.parametrize("path", ["/clusters/*/api/v1/configmaps", "/targets/root:edge/api/v1/configmaps"])
def test_privileged_worlds(api: Any, run: Any, path: str) -> None:
    api.allow("ann", {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]})
    assert run(api.get(path)).status == 200
    assert run(api.get(path, user="ann")).status == 403


def test_who_is_nobody_is_401(api: Any, run: Any) -> None:
    reply = run(api.get("/api/v1/configmaps", user="nobody"))
    assert (reply.status, reply.json["reason"]) == (401, "Unauthorized")


def test_impersonation(api: Any, run: Any) -> None:
    api.allow("ann", READ)
    assert run(api.get("/api/v1/configmaps", impersonate_user="ann")).status == 200
    assert run(api.get("/api/v1/secrets", impersonate_user="ann")).status == 403
    assert run(api.get("/api/v1/configmaps", user="ann", impersonate_user="bob")).status == 403


def test_across_workspaces_one_only_reads(api: Any, run: Any) -> None:
    assert run(api.call("POST", "/clusters/*/api/v1/namespaces/default/configmaps", {})).status == 405
    assert run(api.get("/clusters/*/api/v1/namespaces/default/configmaps/a")).status == 404


def test_methods(api: Any, run: Any) -> None:
    assert run(api.call("POST", "/api/v1/namespaces/default/configmaps/a", {})).status == 405
    assert run(api.call("OPTIONS", "/api/v1/configmaps")).status == 405
    assert run(api.call("POST", "/version", {})).status == 405
    assert run(api.get("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")).status == 405


def test_health_and_version(api: Any, run: Any) -> None:
    assert run(api.get("/clusters/root:shop/healthz")).body == b"ok"
    verbose = run(api.get("/clusters/root:shop/readyz?verbose")).body.decode()
    assert "[+]ping ok\n" in verbose
    assert verbose.endswith("readyz check passed\n")
    ping = run(api.call("HEAD", "/livez/ping"))
    assert ping.status == 200
    # Clients that find this leave it to the server how much they may ask.
    assert {"x-kubernetes-pf-flowschema-uid", "x-kubernetes-pf-prioritylevel-uid"} <= ping.headers.keys()
    assert run(api.get("/livez/nope")).status == 404
    version = run(api.get("/version/")).json
    assert (version["major"], version["minor"]) == ("1", "36")
    assert version["gitVersion"].startswith("v1.36.")


def test_a_crash_is_a_plain_500(api: Any, run: Any, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(api.store, "get", fail)
    reply = run(api.get("/api/v1/namespaces/default/configmaps/a"))
    assert (reply.status, reply.json["reason"]) == (500, "InternalError")
    assert b"secret" not in reply.body
    assert "secret detail" in caplog.text


def widgets(scope: str, title: str) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "group": "example.io",
        "names": {"plural": "widgets", "singular": "widget", "kind": title, "listKind": f"{title}List"},
        "scope": scope,
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        ],
    }  # fmt: skip


def test_custom_resources_across_workspaces(api: Any, run: Any) -> None:
    established = {"conditions": [{"type": "Established", "status": "True"}]}
    crd = "apiextensions.k8s.io/v1 CustomResourceDefinition"
    api.put(
        api.manifest(crd, "widgets.example.io", "", api.SHOP, spec=widgets("Cluster", "Widget"), status=established),
        api.manifest("example.io/v1 Widget", "w", "", api.SHOP),
    )
    found = run(api.get("/clusters/*/apis/example.io/v1/widgets")).json
    assert [(i["kind"], i["metadata"]["name"]) for i in found["items"]] == [("Widget", "w")]
    assert run(api.get("/clusters/*/apis/example.io/v1/gadgets")).status == 404
    assert run(api.get("/apis/example.io/v1/widgets")).status == 404


def test_a_bound_api_across_workspaces_is_named_by_its_identity(api: Any, run: Any) -> None:
    spec = {**widgets("Cluster", "Widget")}
    spec["versions"] = [{**v, "schema": v["schema"]["openAPIV3Schema"]} for v in spec["versions"]]
    bound = {
        "group": "example.io",
        "resource": "widgets",
        "schema": {"name": "v1.widgets.example.io", "UID": "uid-v1.widgets.example.io", "identityHash": "1dent1ty"},
        "storageVersions": ["v1"],
    }
    api.put(
        api.manifest("apis.kcp.io/v1alpha1 APIResourceSchema", "v1.widgets.example.io", spec=spec),
        api.manifest(
            "apis.kcp.io/v1alpha2 APIExport",
            "widgets",
            spec={"resources": [{"name": "widgets", "group": "example.io", "schema": "v1.widgets.example.io"}]},
            status={"identityHash": "1dent1ty"},
        ),
        api.manifest(
            "apis.kcp.io/v1alpha1 APIBinding",
            "widgets",
            "",
            api.SHOP,
            spec={},
            status={"phase": "Bound", "apiExportClusterName": "root", "boundResources": [bound]},
        ),
    )
    api.put_workspace("root:shop", api.SHOP, writes="Store")
    path = "/apis/example.io/v1/widgets"
    body = {"kind": "Widget", "apiVersion": "example.io/v1", "metadata": {"name": "w"}}
    assert run(api.call("POST", f"/clusters/root:shop{path}?dryRun=All", body)).status == 201
    for name in ("widgets", "widgets:1dent1ty"):
        assert run(api.get(f"/clusters/*/apis/example.io/v1/{name}")).json["kind"] == "WidgetList"
    assert run(api.get("/clusters/*/apis/example.io/v1/widgets:other")).status == 404
    groups = [g["name"] for g in run(api.get("/clusters/*/apis")).json["groups"]]
    assert "example.io" in groups


def test_a_timeout_has_to_be_a_duration(api: Any, run: Any) -> None:
    assert run(api.get("/api?timeout=32s")).status == 200
    reply = run(api.get("/api?timeout=soon"))
    assert (reply.status, 'invalid duration "soon"' in reply.message) == (400, True)


def test_views_that_are_not_there_yet_say_so(api: Any, run: Any) -> None:
    reply = run(api.get("/services/syncer/root:shop/databases/clusters/*/api"))
    assert (reply.status, reply.json["reason"]) == (501, "NotImplemented")
    assert "/services/syncer is not supported yet" in reply.message
    assert run(api.get("/services", user="ann")).status == 403
    assert run(api.get("/nope")).status == 404


def test_a_target_counts_its_objects_for_who_may_ask(api: Any, run: Any) -> None:
    reply = run(api.get(f"{api.EDGE}/metrics"))
    assert (reply.status, reply.headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    held = len(run(api.get(f"{api.EDGE}/api/v1/namespaces")).json["items"])
    assert f'apiserver_resource_objects{{group="",resource="namespaces"}} {held}\n' in reply.body.decode()
    assert run(api.get(f"{api.EDGE}/metrics", user="ann")).status == 403
    assert run(api.get("/targets/root:none/metrics", user="ann")).status == 403


@pytest.mark.parametrize("world", ["root", "root:shop", "*"])
def test_metrics_are_of_the_server_and_of_no_ordinary_workspace(api: Any, run: Any, world: str) -> None:
    reply = run(api.get(f"/clusters/{world}/metrics"))
    assert (reply.status, reply.body) == (501, b"shard-level endpoint not available at workspace scope\n")
    assert run(api.get(f"/clusters/{world}/metrics", user="ann")).status == 403
    assert run(api.get("/clusters/root:none/metrics", user="ann")).status == 403
    assert run(api.get(f"/clusters/{world}/metrics", user="nobody")).status == 401


def test_a_workspace_with_all_of_kubernetes_kinds_counts_its_objects_as_a_cluster_does(api: Any, run: Any) -> None:
    api.put_workspace("root:lab", "labcluster000000", builtins="Kubernetes")
    api.put(api.manifest("v1 Namespace", "default", cluster="labcluster000000"))
    reply = run(api.get("/clusters/root:lab/metrics"))
    assert (reply.status, reply.headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert 'apiserver_resource_objects{group="",resource="namespaces"} 1\n' in reply.body.decode()
    assert run(api.get("/clusters/root:lab/metrics", user="ann")).status == 403


@pytest.mark.parametrize("path", ["/clusters/root/clusters/root:shop/api", "/clusters/root:none/clusters/root/version"])
def test_no_workspace_is_inside_the_url_of_another(api: Any, run: Any, path: str) -> None:
    for user in ("", "ann"):
        reply = run(api.get(path, user=user))
        assert (reply.status, reply.body) == (404, b"404 page not found\n")


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/version"])
def test_what_a_cluster_says_of_itself_each_workspace_says(api: Any, run: Any, path: str) -> None:
    api.allow("ann", cluster=api.SHOP)
    for world in ("root:shop", api.SHOP):
        assert run(api.get(f"/clusters/{world}{path}", user="ann")).status == 200


def test_trouble_of_the_fleet_is_a_line_of_readyz(api: Any, run: Any) -> None:
    """With its text for those who may read where it stands, by its kind for others who may ask there, and not at all
    for whom has no right there; and reads go on. Who may enter root is anybody in some fleets, and a text may name any
    workspace."""
    assert "[+]fleet ok\n" in run(api.get("/readyz?verbose")).body.decode()
    found = {"RemoteAway": "fleet.git does not\nanswer", "Held": "commit 1 is held"}
    api.store.write(tree.put_troubles(found)).result(10)
    reading = {"verbs": ["get"], "apiGroups": ["core.kcp.io"], "resources": ["logicalclusters"]}
    api.allow("ann", reading)
    api.allow("cem")
    for user in ("", "ann"):
        for path in ("/readyz?verbose", "/clusters/root/readyz?verbose"):
            reply = run(api.get(path, user=user))
            assert reply.status == 200
            line = "[-]fleet Held: commit 1 is held; RemoteAway: fleet.git does not answer\n"
            assert line in reply.body.decode()
            assert reply.body.decode().endswith("readyz check passed\n")
    paths = ("/readyz?verbose", "/clusters/root/readyz?verbose")
    for path in paths:
        assert run(api.get(path, user="bob")).body == b"ok"
    for path, user in (("/clusters/root:shop/readyz?verbose", ""), *product(paths, ("cem",))):
        reply = run(api.get(path, user=user))
        assert (reply.status, "[-]fleet Held; RemoteAway\n" in reply.body.decode()) == (200, True)
        assert "fleet.git" not in reply.body.decode()
    assert run(api.get("/readyz")).body == b"ok"
    assert run(api.get("/livez?verbose")).body.count(b"fleet") == 0
    # Who asks for it alone is told by the status, too.
    assert run(api.get("/readyz/fleet", user="bob")).status == 500
    assert run(api.get("/livez/fleet")).status == 404


def test_a_workspace_that_changes_with_every_commit_is_remembered_once(api: Any, run: Any) -> None:
    """Its record says all that is wrong with it, and says so anew with each commit."""
    errors = [f"workspaces/root/broken/a.yaml:{line}: bad" for line in range(1000)]

    def commit(number: int) -> None:
        found = tree.workspace_at(api.store, "root:shop")
        record = replace(found, head=own(f"{number + 1:040x}"), errors=errors)
        api.store.write(tree.put_workspace(record)).result()
        assert run(api.get("/clusters/root:shop/api/v1/configmaps?limit=1")).status == 200

    commit(0)
    tracemalloc.start()
    try:
        for number in range(1, 30):
            commit(number)
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 500_000
