"""What an export's provider sees of its consumers, and may do there (support/providerfleet says who they are)."""

from __future__ import annotations

from typing import Any

import pytest
from support.providerfleet import (
    CONFIGMAPS,
    DB,
    HASH,
    RBAC,
    SECRETS,
    V2,
    VIEW,
    WIDGETS,
    B,
    C,
    Object,
    ProviderFleet,
    accepted,
    claim,
)

from apiserver.registry.builtins.served import SHIPPED_IDENTITY
from apiserver.registry.permissionclaims import REFLEXIVE, Claimed, label_key, label_value


@pytest.fixture
def fleet(api: Any, run: Any) -> ProviderFleet:
    return ProviderFleet(api, run)


# -- reading


def test_a_provider_sees_the_objects_of_all_who_bind_and_of_nobody_else(fleet: ProviderFleet) -> None:
    for cluster in (fleet.shop, B, C):
        fleet.widget("w", cluster)
    assert fleet.names(f"{VIEW}/*{WIDGETS}") == [(B, "w"), (fleet.shop, "w")]
    assert fleet.names(f"/services/apiexport/root:db/widgets/clusters/*{WIDGETS}") == [(B, "w"), (fleet.shop, "w")]
    assert fleet.names(f"{VIEW}/{B}{WIDGETS}") == [(B, "w")]
    assert fleet.get(f"{VIEW}/{B}/apis/example.io/v1/namespaces/default/widgets/w").json["spec"] == {"size": 1}


def test_a_provider_sees_what_is_claimed_and_accepted_and_no_more(fleet: ProviderFleet) -> None:
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


def test_claimed_and_not_accepted_is_empty_for_all_and_403_for_one(fleet: ProviderFleet) -> None:
    fleet.put("v1 ConfigMap", "hers", B)
    fleet.bind(fleet.shop, accepted("configmaps", state="Rejected"))
    assert fleet.names(f"{VIEW}/*{CONFIGMAPS}") == []
    for cluster in (fleet.shop, B):
        refused = fleet.get(f"{VIEW}/{cluster}{CONFIGMAPS}")
        assert refused.status == 403 and "failed to find suitable reason" in refused.message


def test_who_is_no_consumer_and_who_is_not_there_are_one_answer(fleet: ProviderFleet) -> None:
    texts = set()
    for cluster in (C, "nobody0000000000", "root", "root:c", "no%00body"):
        refused = fleet.get(f"{VIEW}/{cluster}{WIDGETS}")
        texts.add((refused.status, refused.message))
    [(status, text)] = texts
    assert status == 403 and "could not find suitable APIBinding in target logical cluster" in text


def test_nothing_tells_in_which_state_a_workspace_is_that_is_no_consumer(fleet: ProviderFleet) -> None:
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


def test_claimed_objects_say_by_which_claim_they_are_seen(fleet: ProviderFleet) -> None:
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
def test_kinds_of_kcps_that_all_have_are_claimed_by_what_ships(fleet: ProviderFleet, kind: str) -> None:
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


def test_no_other_identity_names_them(fleet: ProviderFleet) -> None:
    asked = {"group": "tenancy.kcp.io", "identityHash": HASH}
    fleet.export(claim("workspaces", **asked))
    fleet.bind(fleet.shop, accepted("workspaces", **asked))
    fleet.put("tenancy.kcp.io/v1alpha1 Workspace", "one", fleet.shop, namespace="", spec={})
    assert fleet.get(f"{VIEW}/*/apis/tenancy.kcp.io/v1alpha1/workspaces").status == 404


def test_bindings_to_the_export_are_seen_in_both_versions_and_others_are_not(fleet: ProviderFleet) -> None:
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


def test_another_export_of_the_name_is_nobodys(fleet: ProviderFleet) -> None:
    """Whoever deletes an export and makes another is not let in by who trusted the first."""
    fleet.put("v1 ConfigMap", "seen", fleet.shop)
    resource = {"name": "widgets", "group": "example.io", "schema": "v1.widgets.example.io"}
    spec = {"resources": [resource], "permissionClaims": [claim("configmaps")]}
    fleet.api.put(fleet.api.manifest(f"{V2} APIExport", "widgets", "", DB, spec=spec, status={"identityHash": "new"}))
    fleet.widget("w", fleet.shop)
    for path in (WIDGETS, CONFIGMAPS, "/apis/apis.kcp.io/v1alpha2/apibindings"):
        assert fleet.names(f"{VIEW}/*{path}") == []
    assert fleet.get(f"{VIEW}/{fleet.shop}{CONFIGMAPS}").status == 403


def test_pages_are_of_what_is_seen_and_count_nothing_else(fleet: ProviderFleet) -> None:
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


def test_a_view_has_its_own_discovery(fleet: ProviderFleet) -> None:
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


def test_whoever_lacks_the_verb_on_content_learns_nothing(fleet: ProviderFleet) -> None:
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


def test_rights_in_a_consumers_workspace_are_none_here(fleet: ProviderFleet) -> None:
    everything = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}, {"nonResourceURLs": ["*"], "verbs": ["*"]}]
    fleet.grant(fleet.shop, "eve", everything)
    assert fleet.get(f"{VIEW}/{fleet.shop}{WIDGETS}", user="eve").status == 403


def test_verbs_are_those_of_export_and_binding(fleet: ProviderFleet) -> None:
    fleet.export(claim("configmaps", "get", "list"))
    fleet.bind(fleet.shop, accepted("configmaps", "list", "watch"))
    fleet.put("v1 ConfigMap", "seen", fleet.shop)
    one = f"{VIEW}/{fleet.shop}/api/v1/namespaces/default/configmaps"
    assert fleet.get(f"{VIEW}/{fleet.shop}{CONFIGMAPS}").status == 200
    assert fleet.get(f"{one}/seen").status == 403
    assert fleet.get(f"{VIEW}/*{CONFIGMAPS}?watch=1").status == 403
    assert fleet.call("DELETE", f"{one}/seen").status == 403


# -- writing


def test_a_provider_writes_what_is_bound_and_its_status(fleet: ProviderFleet) -> None:
    collection = f"{VIEW}/{B}/apis/example.io/v1/namespaces/default/widgets"
    body = {"kind": "Widget", "apiVersion": "example.io/v1", "metadata": {"name": "w"}, "spec": {"size": 2}}
    assert fleet.call("POST", collection, body).status == 201
    merge = "application/merge-patch+json"
    assert fleet.call("PATCH", f"{collection}/w/status", {"status": {"seen": True}}, kind=merge).status == 200
    found = fleet.get("/clusters/root:b/apis/example.io/v1/namespaces/default/widgets/w", user="").json
    assert (found["spec"], found["status"]) == ({"size": 2}, {"seen": True})
    assert fleet.call("POST", f"{VIEW}/*/apis/example.io/v1/namespaces/default/widgets", body).status == 405
    assert fleet.call("POST", collection.replace(B, C), body).status == 403


def test_what_is_written_by_a_claim_stays_within_it(fleet: ProviderFleet) -> None:
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


def test_an_object_that_is_not_seen_is_not_written_either(fleet: ProviderFleet) -> None:
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


def test_a_claim_gives_no_more_than_objects(fleet: ProviderFleet) -> None:
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


def test_questions_that_are_claimed_are_answered_as_the_consumer_answers_them(fleet: ProviderFleet) -> None:
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
