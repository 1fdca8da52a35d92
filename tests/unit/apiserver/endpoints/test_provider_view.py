"""What an export's provider sees of its consumers, and may do there.

root:db offers Widgets and claims ConfigMaps and Secrets; root:shop and root:b take Widgets, root:shop accepts that its
ConfigMaps are seen, and of its Secrets those labelled for it; root:c takes nothing. `pat` may use the view.
"""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from apiserver.model.keys import Key
from apiserver.registry import codec
from apiserver.registry.builtins.served import SHIPPED_IDENTITY
from apiserver.registry.permissionclaims import REFLEXIVE, Claimed, label_key, label_value
from apiserver.registry.tree import workspace_at
from apiserver.storage.protocol import Put

DB, B, C = "dbcluster0000000", "bcluster00000000", "ccluster00000000"
VIEW = f"/services/apiexport/{DB}/widgets/clusters"
WIDGETS = "/apis/example.io/v1/widgets"
CONFIGMAPS, SECRETS = "/api/v1/configmaps", "/api/v1/secrets"
V2 = "apis.kcp.io/v1alpha2"
HASH = "1dent1ty"
RBAC = "rbac.authorization.k8s.io/v1"
FIELDS = {"spec": {"size": {"type": "integer"}}, "status": {"seen": {"type": "boolean"}}}
SHAPE = {
    "type": "object",
    "properties": {part: {"type": "object", "properties": fields} for part, fields in FIELDS.items()},
}
PICKED = {"matchLabels": {"for": "db"}}
CONTENT = [{"apiGroups": ["apis.kcp.io"], "resources": ["apiexports/content"], "verbs": ["*"]},
           {"nonResourceURLs": ["/"], "verbs": ["access"]}]  # fmt: skip
"""Rules: what a provider needs to look at consumers."""

Object = dict[str, Any]


def claim(resource: str, *verbs: str, **more: Any) -> Object:
    return {"group": "", "resource": resource, "identityHash": "", "verbs": list(verbs or ("*",)), **more}


def accepted(resource: str, *verbs: str, state: str = "Accepted", **more: Any) -> Object:
    return claim(resource, *verbs, **{"selector": {"matchAll": True}, **more}, state=state)


class Fleet:
    def __init__(self, api: Any, run: Any) -> None:
        self.api, self.run = api, run
        self.shop = api.SHOP
        api.delete(api.manifest("v1 ConfigMap", "s", "default", self.shop))
        for path, cluster in (("root:db", DB), ("root:shop", self.shop), ("root:b", B), ("root:c", C)):
            api.put_workspace(path, cluster, writes="Store", served=True)
        names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
        version = {"name": "v1", "served": True, "storage": True, "schema": SHAPE, "subresources": {"status": {}}}
        spec = {"group": "example.io", "scope": "Namespaced", "names": names, "versions": [version]}
        schema = api.manifest("apis.kcp.io/v1alpha1 APIResourceSchema", "v1.widgets.example.io", "", DB, spec=spec)
        api.put(schema)
        self.export(claim("configmaps"), claim("secrets"))
        self.bind(self.shop, accepted("configmaps"), accepted("secrets", selector=PICKED))
        self.bind(B)
        for cluster in (self.shop, B, C):
            self.put("v1 Namespace", "default", cluster, namespace="")
        self.grant(DB, "pat", CONTENT)

    def export(self, *claims: Object) -> int:
        resource = {"name": "widgets", "group": "example.io", "schema": "v1.widgets.example.io", "storage": {"crd": {}}}
        spec, status = {"resources": [resource], "permissionClaims": list(claims)}, {"identityHash": HASH}
        return self.api.put(self.api.manifest(f"{V2} APIExport", "widgets", "", DB, spec=spec, status=status))

    def bind(self, cluster: str, *claims: Object, name: str = "widgets", **more: Any) -> Object:
        schema = {"name": "v1.widgets.example.io", "UID": "uid-v1.widgets.example.io", "identityHash": HASH}
        bound = [{"group": "example.io", "resource": "widgets", "schema": schema, "storageVersions": ["v1"]}]
        status = {"phase": "Bound", "apiExportClusterName": DB, "boundResources": bound, **more}
        spec = {"reference": {"export": {"path": "root:db", "name": "widgets"}}, "permissionClaims": list(claims)}
        made = self.api.manifest(f"{V2} APIBinding", name, "", cluster, spec=spec, status=status)
        self.api.put(made)
        return made

    def grant(self, cluster: str, user: str, rules: list[Object]) -> None:
        role = self.api.manifest(f"{RBAC} ClusterRole", user, "", cluster, rules=rules)
        subject = {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
        reference = {"kind": "ClusterRole", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
        self.api.put(role, self.api.manifest(f"{RBAC} ClusterRoleBinding", user, "", cluster, subjects=[subject],
                                             roleRef=reference))  # fmt: skip

    def put(self, kind: str, name: str, cluster: str, *, namespace: str = "default", **content: Any) -> Object:
        made = self.api.manifest(kind, name, namespace, cluster, **content)
        self.api.put(made)
        return made

    def widget(self, name: str, cluster: str, size: int = 1) -> Object:
        """Where the binding has its objects stored."""
        made = self.api.manifest("example.io/v1 Widget", name, "default", cluster, spec={"size": size})
        self.store(made)
        return made

    def store(self, widget: Object) -> None:

        metadata = widget["metadata"]
        key = Key(f"widgets.example.io:{HASH}", metadata["annotations"]["kcp.io/cluster"], "default", metadata["name"])
        self.api.store.write(Put(key, codec.encode(widget))).result(10)

    def call(self, method: str, path: str, body: Any = b"", *, user: str = "pat", **more: Any) -> Any:
        return self.run(self.api.call(method, path, body, user=user, **more))

    def get(self, path: str, *, user: str = "pat", **more: Any) -> Any:
        return self.call("GET", path, user=user, **more)

    def names(self, path: str) -> list[tuple[str, str]]:
        reply = self.get(path)
        assert reply.status == 200, reply.body
        return [(i["metadata"]["annotations"]["kcp.io/cluster"], i["metadata"]["name"]) for i in reply.json["items"]]


@pytest.fixture
def fleet(api: Any, run: Any) -> Fleet:
    return Fleet(api, run)


# -- reading


def test_a_provider_sees_the_objects_of_all_who_bind_and_of_nobody_else(fleet: Fleet) -> None:
    for cluster in (fleet.shop, B, C):
        fleet.widget("w", cluster)
    assert fleet.names(f"{VIEW}/*{WIDGETS}") == [(B, "w"), (fleet.shop, "w")]
    assert fleet.names(f"/services/apiexport/root:db/widgets/clusters/*{WIDGETS}") == [(B, "w"), (fleet.shop, "w")]
    assert fleet.names(f"{VIEW}/{B}{WIDGETS}") == [(B, "w")]
    assert fleet.get(f"{VIEW}/{B}/apis/example.io/v1/namespaces/default/widgets/w").json["spec"] == {"size": 1}


def test_a_provider_sees_what_is_claimed_and_accepted_and_no_more(fleet: Fleet) -> None:
    for cluster in (fleet.shop, B, C):
        fleet.put("v1 ConfigMap", "seen", cluster, data={"a": "b"})
        fleet.put("v1 Secret", "picked", cluster, labels={"for": "db"})
        fleet.put("v1 Secret", "hidden", cluster, labels={"for": "others"})
    assert fleet.names(f"{VIEW}/*{CONFIGMAPS}") == [(fleet.shop, "seen")]
    assert fleet.names(f"{VIEW}/*{SECRETS}") == fleet.names(f"{VIEW}/{fleet.shop}{SECRETS}") == [(fleet.shop, "picked")]
    hidden = fleet.get(f"{VIEW}/{fleet.shop}/api/v1/namespaces/default/secrets/hidden")
    absent = fleet.get(f"{VIEW}/{fleet.shop}/api/v1/namespaces/default/secrets/absent")
    assert (hidden.status, hidden.message.replace("hidden", "absent")) == (404, absent.message)
    for path in (f"{VIEW}/*/api/v1/services", f"{VIEW}/*/api/v1/serviceaccounts", f"{VIEW}/*/apis/apps/v1/deployments"):
        assert fleet.get(path).status == 404


def test_claimed_and_not_accepted_is_empty_for_all_and_403_for_one(fleet: Fleet) -> None:
    fleet.put("v1 ConfigMap", "hers", B)
    fleet.bind(fleet.shop, accepted("configmaps", state="Rejected"))
    assert fleet.names(f"{VIEW}/*{CONFIGMAPS}") == []
    for cluster in (fleet.shop, B):
        refused = fleet.get(f"{VIEW}/{cluster}{CONFIGMAPS}")
        assert refused.status == 403 and "failed to find suitable reason" in refused.message


def test_who_is_no_consumer_and_who_is_not_there_are_one_answer(fleet: Fleet) -> None:
    texts = set()
    for cluster in (C, "nobody0000000000", "root", "root:c", "no%00body"):
        refused = fleet.get(f"{VIEW}/{cluster}{WIDGETS}")
        texts.add((refused.status, refused.message))
    [(status, text)] = texts
    assert status == 403 and "could not find suitable APIBinding in target logical cluster" in text


def test_nothing_tells_in_which_state_a_workspace_is_that_is_no_consumer(fleet: Fleet) -> None:
    """What there is in the view is the same for all; a consumer is answered for by what it is."""
    fleet.api.put_workspace("root:bad", "badcluster000000", errors=["workspaces/root/bad/a.yaml:1: bad"])
    fleet.api.put_workspace("root:idle", "idlecluster00000", served=True)
    mark = {"core.kcp.io/inactive": "true"}
    fleet.put("core.kcp.io/v1alpha1 LogicalCluster", "cluster", "idlecluster00000", namespace="", annotations=mark)
    documents = ("", "/api", "/apis", "/apis/example.io/v1", "/openapi/v3", "/openapi/v2", "/version")
    for rest in (*documents, WIDGETS):
        told = [fleet.get(f"{VIEW}/{name}{rest}") for name in ("root:bad", "root:idle", C, "root:c", "root:none")]
        assert [each == told[0] for each in told] == [True] * 5, rest
    fleet.bind("idlecluster00000")
    assert "is marked inactive" in fleet.get(f"{VIEW}/root:idle/api").message


def test_claimed_objects_say_by_which_claim_they_are_seen(fleet: Fleet) -> None:
    fleet.put("v1 ConfigMap", "seen", fleet.shop, labels={"own": "x"})
    expected = {label_key(DB, "widgets"): label_value(Claimed("", "configmaps", "")), "own": "x"}
    path = f"{VIEW}/{fleet.shop}/api/v1/namespaces/default/configmaps/seen"
    assert fleet.get(path).json["metadata"]["labels"] == expected
    key, value = label_key(DB, "widgets"), expected[label_key(DB, "widgets")]
    assert fleet.names(f"{VIEW}/*{CONFIGMAPS}?labelSelector={key}={value}") == [(fleet.shop, "seen")]
    assert fleet.names(f"{VIEW}/*{CONFIGMAPS}?labelSelector={key}=other") == []
    own = fleet.get("/clusters/root:shop/api/v1/namespaces/default/configmaps/seen", user="").json
    assert own["metadata"]["labels"] == {"own": "x"}
    fleet.widget("w", B)
    assert "labels" not in fleet.get(f"{VIEW}/*{WIDGETS}").json["items"][0]["metadata"]


@pytest.mark.parametrize("kind", ["Workspace", "WorkspaceType", "Partition", "PartitionSet"])
def test_kinds_of_kcps_that_all_have_are_claimed_by_what_ships(fleet: Fleet, kind: str) -> None:
    """kcp binds them from exports in root, so claims name the identity of these."""
    group = "tenancy.kcp.io" if kind.startswith("Workspace") else "topology.kcp.io"
    resource, at = f"{kind.lower()}s", f"/apis/{group}/v1alpha1/{kind.lower()}s"
    asked = {"group": group, "identityHash": SHIPPED_IDENTITY}
    fleet.put(f"{V2} APIExport", group, "root", namespace="", spec={}, status={"identityHash": SHIPPED_IDENTITY})
    fleet.export(claim(resource, "get", "list", **asked))
    fleet.bind(fleet.shop, accepted(resource, **asked))
    for cluster in (fleet.shop, B):
        fleet.put(f"{group}/v1alpha1 {kind}", "one", cluster, namespace="", spec={})
    assert fleet.names(f"{VIEW}/*{at}") == [(fleet.shop, "one")]
    assert fleet.get(f"{VIEW}/{fleet.shop}{at}/one").status == 200
    assert fleet.get(f"{VIEW}/{B}{at}").status == 403
    assert fleet.call("DELETE", f"{VIEW}/{fleet.shop}{at}/one").status == 403
    everywhere = fleet.get(f"/clusters/*{at}:{SHIPPED_IDENTITY}", user="")
    assert len(everywhere.json["items"]) == 2


def test_no_other_identity_names_them(fleet: Fleet) -> None:
    asked = {"group": "tenancy.kcp.io", "identityHash": HASH}
    fleet.export(claim("workspaces", **asked))
    fleet.bind(fleet.shop, accepted("workspaces", **asked))
    fleet.put("tenancy.kcp.io/v1alpha1 Workspace", "one", fleet.shop, namespace="", spec={})
    assert fleet.get(f"{VIEW}/*/apis/tenancy.kcp.io/v1alpha1/workspaces").status == 404


def test_bindings_to_the_export_are_seen_in_both_versions_and_others_are_not(fleet: Fleet) -> None:
    other = fleet.bind(B, name="other", apiExportClusterName=C)
    assert other["metadata"]["name"] == "other"
    for version in ("v1alpha1", "v1alpha2"):
        path = f"/apis/apis.kcp.io/{version}/apibindings"
        assert fleet.names(f"{VIEW}/*{path}") == [(B, "widgets"), (fleet.shop, "widgets")]
    found = fleet.get(f"{VIEW}/{B}/apis/apis.kcp.io/v1alpha2/apibindings/widgets")
    assert found.json["metadata"]["labels"] == {label_key(DB, "widgets"): REFLEXIVE}
    assert fleet.get(f"{VIEW}/{B}/apis/apis.kcp.io/v1alpha2/apibindings/other").status == 404
    changed = fleet.call("DELETE", f"{VIEW}/{B}/apis/apis.kcp.io/v1alpha2/apibindings/widgets")
    assert changed.status == 403 and "write access to APIBinding is not allowed" in changed.message


def test_another_export_of_the_name_is_nobodys(fleet: Fleet) -> None:
    """Whoever deletes an export and makes another is not let in by who trusted the first."""
    fleet.put("v1 ConfigMap", "seen", fleet.shop)
    resource = {"name": "widgets", "group": "example.io", "schema": "v1.widgets.example.io"}
    spec = {"resources": [resource], "permissionClaims": [claim("configmaps")]}
    fleet.api.put(fleet.api.manifest(f"{V2} APIExport", "widgets", "", DB, spec=spec, status={"identityHash": "new"}))
    fleet.widget("w", fleet.shop)
    for path in (WIDGETS, CONFIGMAPS, "/apis/apis.kcp.io/v1alpha2/apibindings"):
        assert fleet.names(f"{VIEW}/*{path}") == []
    assert fleet.get(f"{VIEW}/{fleet.shop}{CONFIGMAPS}").status == 403


def test_pages_are_of_what_is_seen_and_count_nothing_else(fleet: Fleet) -> None:
    for n in range(5):
        fleet.put("v1 Secret", f"s{n}", fleet.shop, labels={"for": "db"} if n % 2 == 0 else {})
        fleet.put("v1 Secret", f"s{n}", C)
    found, token = [], ""
    while True:
        page = fleet.get(f"{VIEW}/*{SECRETS}?limit=1&continue={token}").json
        found += [item["metadata"]["name"] for item in page["items"]]
        assert "remainingItemCount" not in page["metadata"]
        token = page["metadata"].get("continue", "")
        if not token:
            break
    assert found == ["s0", "s2", "s4"]
    table = fleet.get(f"{VIEW}/*{SECRETS}", accept="application/json;as=Table;v=v1;g=meta.k8s.io").json
    assert [row["cells"][0] for row in table["rows"]] == ["s0", "s2", "s4"]


def test_a_view_has_its_own_discovery(fleet: Fleet) -> None:
    groups = {g["name"] for g in fleet.get(f"{VIEW}/*/apis").json["groups"]}
    assert groups == {"apis.kcp.io", "example.io"}
    core = fleet.get(f"{VIEW}/{fleet.shop}/api/v1").json["resources"]
    assert {r["name"] for r in core} == {"configmaps", "secrets"}
    widgets = fleet.get(f"{VIEW}/*/apis/example.io/v1").json["resources"]
    assert {r["name"] for r in widgets} == {"widgets", "widgets/status"}
    document = fleet.get(f"{VIEW}/*/openapi/v3/apis/example.io/v1").json
    assert "io.example.v1.Widget" in document["components"]["schemas"]
    for path in ("/healthz", "/metrics", "/openid/v1/jwks"):
        assert fleet.get(f"{VIEW}/*{path}").status in (404, 501)


# -- who may


def test_whoever_lacks_the_verb_on_content_learns_nothing(fleet: Fleet) -> None:
    fleet.grant(DB, "ann", [{"nonResourceURLs": ["/"], "verbs": ["access"]},
                            {"apiGroups": ["apis.kcp.io"], "resources": ["apiexports/content"], "verbs": ["list"],
                             "resourceNames": ["widgets"]}])  # fmt: skip
    fleet.widget("w", B)
    assert fleet.get(f"{VIEW}/*{WIDGETS}", user="ann").status == 200
    assert fleet.get(f"{VIEW}/{B}/apis/example.io/v1/namespaces/default/widgets/w", user="ann").status == 403
    texts = set()
    for place in (f"{DB}/widgets", f"{DB}/none", "root:none/widgets", f"{C}/widgets"):
        refused = fleet.get(f"/services/apiexport/{place}/clusters/*{WIDGETS}", user="bob")
        texts.add((refused.status, refused.message))
    assert len(texts) == 1 and next(iter(texts))[0] == 403


def test_rights_in_a_consumers_workspace_are_none_here(fleet: Fleet) -> None:
    everything = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}, {"nonResourceURLs": ["*"], "verbs": ["*"]}]
    fleet.grant(fleet.shop, "eve", everything)
    assert fleet.get(f"{VIEW}/{fleet.shop}{WIDGETS}", user="eve").status == 403


def test_verbs_are_those_of_export_and_binding(fleet: Fleet) -> None:
    fleet.export(claim("configmaps", "get", "list"))
    fleet.bind(fleet.shop, accepted("configmaps", "list", "watch"))
    fleet.put("v1 ConfigMap", "seen", fleet.shop)
    one = f"{VIEW}/{fleet.shop}/api/v1/namespaces/default/configmaps"
    assert fleet.get(f"{VIEW}/{fleet.shop}{CONFIGMAPS}").status == 200
    assert fleet.get(f"{one}/seen").status == 403
    assert fleet.get(f"{VIEW}/*{CONFIGMAPS}?watch=1").status == 403
    assert fleet.call("DELETE", f"{one}/seen").status == 403


# -- writing


def test_a_provider_writes_what_is_bound_and_its_status(fleet: Fleet) -> None:
    collection = f"{VIEW}/{B}/apis/example.io/v1/namespaces/default/widgets"
    body = {"kind": "Widget", "apiVersion": "example.io/v1", "metadata": {"name": "w"}, "spec": {"size": 2}}
    assert fleet.call("POST", collection, body).status == 201
    merge = "application/merge-patch+json"
    assert fleet.call("PATCH", f"{collection}/w/status", {"status": {"seen": True}}, kind=merge).status == 200
    found = fleet.get("/clusters/root:b/apis/example.io/v1/namespaces/default/widgets/w", user="").json
    assert (found["spec"], found["status"]) == ({"size": 2}, {"seen": True})
    assert fleet.call("POST", f"{VIEW}/*/apis/example.io/v1/namespaces/default/widgets", body).status == 405
    assert fleet.call("POST", collection.replace(B, C), body).status == 403


def test_what_is_written_by_a_claim_stays_within_it(fleet: Fleet) -> None:
    secrets = f"{VIEW}/{fleet.shop}/api/v1/namespaces/default/secrets"
    body: Object = {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "made"}}
    made = fleet.call("POST", secrets, body).json
    mark = {label_key(DB, "widgets"): label_value(Claimed("", "secrets", ""))}
    assert made["metadata"]["labels"] == {"for": "db", **mark}
    own = fleet.get("/clusters/root:shop/api/v1/namespaces/default/secrets/made", user="").json
    assert own["metadata"]["labels"] == {"for": "db"}

    other = {**body, "metadata": {"name": "other", "labels": {"for": "me"}}}
    refused = fleet.call("POST", secrets, other)
    assert refused.status == 403 and "protected label for must have value db" in refused.message
    put = fleet.call("PUT", f"{secrets}/made", {**made, "metadata": {**made["metadata"], "labels": {"for": "me"}}})
    assert put.status == 403 and "protected label for must have value db" in put.message
    back = fleet.call("PUT", f"{secrets}/made", {**made, "stringData": {"a": "b"}})
    assert back.status == 200
    own = fleet.get("/clusters/root:shop/api/v1/namespaces/default/secrets/made", user="").json
    assert own["metadata"]["labels"] == {"for": "db"}


def test_an_object_that_is_not_seen_is_not_written_either(fleet: Fleet) -> None:
    fleet.put("v1 Secret", "hidden", fleet.shop, labels={"for": "others"})
    one = f"{VIEW}/{fleet.shop}/api/v1/namespaces/default/secrets/hidden"
    merge = "application/merge-patch+json"
    for body in ({"metadata": {"labels": {"for": "db"}}}, {"data": 3}):
        assert fleet.call("PATCH", one, body, kind=merge).status == 404
    assert fleet.call("DELETE", one).status == 404
    put = {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "hidden", "labels": {"for": "db"}}}
    assert fleet.call("PUT", one, put).status == 404
    assert fleet.call("DELETE", f"{VIEW}/{fleet.shop}/api/v1/namespaces/default/secrets").status == 200
    own = fleet.get("/clusters/root:shop/api/v1/namespaces/default/secrets/hidden", user="")
    assert own.json["metadata"]["labels"] == {"for": "others"}


def test_a_claim_gives_no_more_than_objects(fleet: Fleet) -> None:
    """A token of a consumer's ServiceAccount would be the consumer; its roles are granted by who holds them."""
    names = ("serviceaccounts", "clusterroles")
    fleet.export(claim("serviceaccounts"), claim("clusterroles", group="rbac.authorization.k8s.io"))
    fleet.bind(fleet.shop, *(accepted(n, group="" if n[0] == "s" else "rbac.authorization.k8s.io") for n in names))
    fleet.put("v1 ServiceAccount", "default", fleet.shop)
    token = f"{VIEW}/{fleet.shop}/api/v1/namespaces/default/serviceaccounts/default/token"
    assert fleet.call("POST", token, {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1"}).status == 404
    role = {"kind": "ClusterRole", "apiVersion": RBAC, "metadata": {"name": "all"},
            "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}  # fmt: skip
    made = fleet.call("POST", f"{VIEW}/{fleet.shop}/apis/{RBAC}/clusterroles", role)
    assert made.status == 403


def test_questions_that_are_claimed_are_answered_as_the_consumer_answers_them(fleet: Fleet) -> None:
    group = "authorization.k8s.io"
    fleet.export(claim("subjectaccessreviews", group=group))
    fleet.bind(fleet.shop, accepted("subjectaccessreviews", group=group))
    rule = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]}
    fleet.grant(fleet.shop, "ann", [rule, {"nonResourceURLs": ["/"], "verbs": ["access"]}])
    body = {"kind": "SubjectAccessReview", "apiVersion": f"{group}/v1",
            "spec": {"user": "ann", "resourceAttributes": {"verb": "list", "resource": "secrets"}}}  # fmt: skip
    path = f"/apis/{group}/v1/subjectaccessreviews"
    answer = fleet.call("POST", f"{VIEW}/{fleet.shop}{path}", body)
    assert (answer.status, answer.json["status"]["allowed"]) == (201, True)
    body["spec"] = {**body["spec"], "user": "pat"}  # type: ignore[dict-item]
    assert fleet.call("POST", f"{VIEW}/{fleet.shop}{path}", body).json["status"]["allowed"] is False
    assert fleet.call("POST", f"{VIEW}/{B}{path}", body).status == 403
    assert fleet.call("POST", f"{VIEW}/*{path}", body).status == 405


# -- watching


async def _gone(watch: Any) -> Any:
    event = await watch.next()
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410), event
    assert await watch.next() is None
    await watch.leave()


def test_one_watch_follows_all_consumers(fleet: Fleet) -> None:
    fleet.widget("first", B)

    async def follow() -> None:
        watch = fleet.api.watch(f"{VIEW}/*{WIDGETS}?watch=1", authorization="Bearer pat")
        assert await watch.seen(1) == [("ADDED", "first")]
        fleet.widget("second", fleet.shop)
        fleet.widget("unseen", C)
        fleet.widget("first", B, size=2)
        assert await watch.seen(2) == [("ADDED", "second"), ("MODIFIED", "first")]
        fleet.bind(C, name="w0")  # it has an object that nobody was told of
        await _gone(watch)

    fleet.run(follow())


def test_a_consumer_that_comes_cuts_nobodys_watch(fleet: Fleet) -> None:
    async def follow() -> None:
        watch = fleet.api.watch(f"{VIEW}/*{WIDGETS}?watch=1", authorization="Bearer pat")
        await watch_open(fleet, watch)
        fleet.bind(C)
        fleet.widget("later", C)
        assert await watch.seen(1) == [("ADDED", "later")]
        await watch.leave()

    fleet.run(follow())


async def watch_open(fleet: Fleet, watch: Any) -> None:
    """Until the hub feeds it."""
    while not fleet.api.hub.count:
        await asyncio.sleep(0)


def test_a_revoked_claim_is_gone_at_once(fleet: Fleet) -> None:
    fleet.put("v1 ConfigMap", "seen", fleet.shop)

    async def follow() -> None:
        for path in (f"{VIEW}/*{CONFIGMAPS}", f"{VIEW}/{fleet.shop}{CONFIGMAPS}"):
            fleet.bind(fleet.shop, accepted("configmaps"))
            watch = fleet.api.watch(f"{path}?watch=1", authorization="Bearer pat")
            assert await watch.seen(1) == [("ADDED", "seen")]
            fleet.bind(fleet.shop, accepted("configmaps", state="Rejected"))
            secret = fleet.put("v1 ConfigMap", "secret", fleet.shop)
            await _gone(watch)
            fleet.api.delete(secret)

    fleet.run(follow())
    assert fleet.get(f"{VIEW}/{fleet.shop}{CONFIGMAPS}").status == 403


@pytest.mark.parametrize("how", ["unbound", "narrowed", "unclaimed"])
def test_whatever_takes_a_claim_away_ends_the_watch(fleet: Fleet, how: str) -> None:
    async def follow() -> None:
        watch = fleet.api.watch(f"{VIEW}/*{CONFIGMAPS}?watch=1", authorization="Bearer pat")
        await watch_open(fleet, watch)
        if how == "unbound":
            fleet.api.delete(fleet.bind(fleet.shop, accepted("configmaps")))
        elif how == "narrowed":
            fleet.bind(fleet.shop, accepted("configmaps", selector=PICKED))
        else:
            fleet.export(claim("secrets"))
        fleet.put("v1 ConfigMap", "late", fleet.shop)
        await _gone(watch)

    fleet.run(follow())


@pytest.mark.parametrize("how", ["binding", "role", "inactive"])
def test_a_provider_that_may_look_no_more_sees_nothing_more(fleet: Fleet, how: str) -> None:
    fleet.grant(DB, "other", CONTENT)

    async def follow() -> None:
        watches = [fleet.api.watch(f"{VIEW}/{at}{WIDGETS}?watch=1", authorization="Bearer pat") for at in ("*", B)]
        stays = fleet.api.watch(f"{VIEW}/*{WIDGETS}?watch=1", authorization="Bearer other")
        fleet.widget("first", B)
        for watch in (*watches, stays):
            assert await watch.seen(1) == [("ADDED", "first")]
        fleet.grant(B, "pat", [])  # in a consumer's workspace it says nothing of the view
        fleet.widget("second", B)
        for watch in (*watches, stays):
            assert await watch.seen(1) == [("ADDED", "second")]
        if how == "binding":
            fleet.api.delete(fleet.api.manifest(f"{RBAC} ClusterRoleBinding", "pat", "", DB))
        elif how == "role":
            fleet.put(f"{RBAC} ClusterRole", "pat", DB, namespace="", rules=CONTENT[1:])
        else:
            inactive(fleet, DB)
        fleet.widget("late", B)
        for watch in watches:
            await _gone(watch)
        if how == "inactive":
            await _gone(stays)
        else:
            assert await stays.seen(1) == [("ADDED", "late")]
            await stays.leave()

    fleet.run(follow())


OTHER, OTHERS = "othercluster0000", "0ther1d"
GEARS = "/apis/gear.io/v1/gears"


def claim_gears(fleet: Fleet) -> None:
    """The export claims what another provider offers, and a consumer of both grants it."""
    api, names = fleet.api, {"plural": "gears", "singular": "gear", "kind": "Gear", "listKind": "GearList"}
    api.put_workspace("root:other", OTHER, writes="Store", served=True)
    spec = {"group": "gear.io", "scope": "Namespaced", "names": names}
    spec["versions"] = [{"name": "v1", "served": True, "storage": True, "schema": SHAPE}]
    api.put(api.manifest("apis.kcp.io/v1alpha1 APIResourceSchema", "v1.gears.gear.io", "", OTHER, spec=spec))
    offer_gears(fleet)
    wanted = {"group": "gear.io", "identityHash": OTHERS}
    fleet.export(claim("gears", **wanted))
    fleet.bind(B, accepted("gears", **wanted))
    schema = {"name": "v1.gears.gear.io", "UID": "uid-v1.gears.gear.io", "identityHash": OTHERS}
    bound = {"group": "gear.io", "resource": "gears", "schema": schema, "storageVersions": ["v1"]}
    status = {"phase": "Bound", "apiExportClusterName": OTHER, "boundResources": [bound]}
    spec = {"reference": {"export": {"path": "root:other", "name": "gears"}}}
    api.put(api.manifest(f"{V2} APIBinding", "gears", "", B, spec=spec, status=status))


def offer_gears(fleet: Fleet, **more: Any) -> None:
    offered = {"name": "gears", "group": "gear.io", "schema": "v1.gears.gear.io", "storage": {"crd": {}}}
    spec = {"resources": [offered], **more}
    fleet.api.put(fleet.api.manifest(f"{V2} APIExport", "gears", "", OTHER, spec=spec, status={"identityHash": OTHERS}))


def gear(fleet: Fleet, name: str) -> None:
    made = fleet.api.manifest("gear.io/v1 Gear", name, "default", B, spec={"size": 1})
    fleet.api.store.write(Put(Key(f"gears.gear.io:{OTHERS}", B, "default", name), codec.encode(made))).result(10)


def test_what_another_provider_offers_is_claimed_by_its_identity_and_seen_as_far_as_its_policy_lets(
    fleet: Fleet,
) -> None:
    claim_gears(fleet)
    gear(fleet, "first")
    assert fleet.names(f"{VIEW}/*{GEARS}") == [(B, "first")]
    assert fleet.get(f"{VIEW}/{B}{GEARS}").status == 200
    assert fleet.get(f"{VIEW}/{fleet.shop}{GEARS}").status in (403, 404)

    async def follow() -> None:
        watches = [fleet.api.watch(f"{VIEW}/{at}{GEARS}?watch=1", authorization="Bearer pat") for at in ("*", B)]
        for watch in watches:
            assert await watch.seen(1) == [("ADDED", "first")]
        offer_gears(fleet, maximalPermissionPolicy={"local": {}})
        gear(fleet, "late")
        for watch in watches:
            await _gone(watch)

    fleet.run(follow())
    assert fleet.get(f"{VIEW}/*{GEARS}").status == 403


def test_groups_that_are_required_above_the_provider_end_its_watches(fleet: Fleet) -> None:
    root = workspace_at(fleet.api.store, "root")
    assert root is not None

    async def follow() -> None:
        watch = fleet.api.watch(f"{VIEW}/*{WIDGETS}?watch=1", authorization="Bearer pat")
        fleet.widget("first", B)
        assert await watch.seen(1) == [("ADDED", "first")]
        said = {"authorization.kcp.io/required-groups": "nobodys"}
        fleet.put(
            "core.kcp.io/v1alpha1 LogicalCluster", "cluster", root.cluster, namespace="", annotations=said, spec={}
        )
        fleet.widget("late", B)
        await _gone(watch)

    fleet.run(follow())


def inactive(fleet: Fleet, cluster: str, mark: str = "true") -> None:
    annotations = {"core.kcp.io/inactive": mark}
    fleet.put("core.kcp.io/v1alpha1 LogicalCluster", "cluster", cluster, namespace="", annotations=annotations, spec={})


def test_an_inactive_consumer_answers_its_provider_nothing_and_ends_watches(fleet: Fleet) -> None:
    fleet.widget("first", B)
    inactive(fleet, B, "false")

    async def follow() -> None:
        watches = [fleet.api.watch(f"{VIEW}/{at}{WIDGETS}?watch=1", authorization="Bearer pat") for at in ("*", B)]
        for watch in watches:
            assert await watch.seen(1) == [("ADDED", "first")]
        inactive(fleet, B)
        for watch in watches:
            assert await watch.next() is None

    fleet.run(follow())
    found = fleet.get(f"{VIEW}/{B}{WIDGETS}")
    assert (found.status, found.message) == (403, "logical cluster is marked inactive")
    assert fleet.names(f"{VIEW}/*{WIDGETS}") == [(B, "first")]


def test_nor_does_an_inactive_provider_look_on(fleet: Fleet) -> None:
    fleet.widget("first", B)
    inactive(fleet, DB)
    for at in ("*", B):
        found = fleet.get(f"{VIEW}/{at}{WIDGETS}")
        assert (found.status, found.message) == (403, "logical cluster is marked inactive")


def test_a_watch_that_comes_again_is_told_what_changed_meanwhile(fleet: Fleet) -> None:
    """From the revision that it saw last: or it would keep what was revoked, or miss what was granted since."""
    fleet.put("v1 ConfigMap", "hers", B)
    seen = fleet.api.store.revision()
    fleet.put("v1 ConfigMap", "new", fleet.shop)

    async def resumed() -> Any:
        watch = fleet.api.watch(f"{VIEW}/*{CONFIGMAPS}?watch=1&resourceVersion={seen}", authorization="Bearer pat")
        event = await watch.next()
        await watch.leave()
        return event

    assert fleet.run(resumed())["object"]["metadata"]["name"] == "new"
    fleet.bind(B, accepted("configmaps"))
    assert fleet.run(resumed())["object"]["metadata"].get("name") in ("new", None)

    async def again() -> None:
        watch = fleet.api.watch(f"{VIEW}/*{CONFIGMAPS}?watch=1&resourceVersion={seen}", authorization="Bearer pat")
        events = []
        while (event := await watch.next()) is not None:
            events.append(event)
        await watch.leave()
        assert events[-1]["object"].get("code") == 410

    fleet.run(again())


def test_other_watches_see_what_they_saw(fleet: Fleet) -> None:
    """Two views and a workspace's own watch of one object share no bytes."""

    async def follow() -> Any:
        view = fleet.api.watch(f"{VIEW}/*{CONFIGMAPS}?watch=1", authorization="Bearer pat")
        own = fleet.api.watch(f"/clusters/root:shop{CONFIGMAPS}?watch=1")
        everywhere = fleet.api.watch(f"/clusters/*{CONFIGMAPS}?watch=1&fieldSelector=metadata.name=one")
        while fleet.api.hub.count < 3:
            await asyncio.sleep(0)
        fleet.put("v1 ConfigMap", "one", fleet.shop)
        found = [await watch.next() for watch in (view, own, everywhere)]
        for watch in (view, own, everywhere):
            await watch.leave()
        return [orjson.dumps(event["object"]) for event in found]

    view, own, everywhere = fleet.run(follow())
    mark = label_key(DB, "widgets").encode()
    assert [mark in each for each in (view, own, everywhere)] == [True, False, False]
