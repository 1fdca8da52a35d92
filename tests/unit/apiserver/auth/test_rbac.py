"""Authorization: who is allowed what in which workspace."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.auth.bootstrap import CLUSTER_ROLES
from apiserver.auth.rbac import Authorizer
from apiserver.auth.rules import Rule
from apiserver.auth.scopes import SCOPES
from apiserver.auth.user import AUTHENTICATED, KCP_ADMIN, MASTERS, SYNCERS, Attributes, User
from apiserver.auth.warrants import WARRANT

BOB = User("bob", ("devs", AUTHENTICATED))
ADMIN = User("root", (MASTERS, AUTHENTICATED))
KCP = User("kcp-admin", (KCP_ADMIN, AUTHENTICATED))
GET = Attributes("get", version="v1", resource="configmaps", namespace="ns", name="a")


def rule(verbs: str, resources: str = "", groups: str = "", **more: Any) -> dict[str, Any]:
    return {"verbs": verbs.split(","), "apiGroups": groups.split(","), "resources": resources.split(","), **more}


def urls(verb: str, *paths: str) -> dict[str, Any]:
    return {"verbs": [verb], "nonResourceURLs": list(paths)}


@pytest.fixture
def allowed(store: Any) -> Callable[..., bool]:
    authorizer = Authorizer(store)
    return lambda user, asked, cluster="ws": authorizer.authorize(cluster, user, asked).allowed


def test_masters_pass_everywhere(allowed: Any) -> None:
    assert allowed(ADMIN, GET)
    assert allowed(ADMIN, GET, "*")


def test_kcp_admins_have_access_and_cluster_admin_everywhere(allowed: Any) -> None:
    for cluster in ("ws", "other", "*"):
        assert allowed(KCP, GET, cluster)
        assert allowed(KCP, Attributes("update", path="/git/fleet.git"), cluster)
    assert not allowed(User("kcp-admin", KCP.groups, extra={SCOPES: ("cluster:ws",)}), GET, "*")


@pytest.mark.parametrize("resource", ["apibindings", "apiexports"])
@pytest.mark.parametrize("verb", ["update", "patch"])
def test_what_bindings_and_exports_say_of_themselves_is_for_no_role_to_write(
    rbac: Any, allowed: Any, resource: str, verb: str
) -> None:
    rbac("ws").bind("cluster-admin", ("User", "bob"))
    status = Attributes(verb, "apis.kcp.io", "v1alpha1", resource, "status", name="a")
    for user in (KCP, BOB):
        assert not allowed(user, status)
        assert allowed(user, Attributes(verb, "apis.kcp.io", "v1alpha1", resource, name="a"))
        assert allowed(user, Attributes("get", "apis.kcp.io", "v1alpha1", resource, "status", name="a"))
    assert allowed(ADMIN, status)


def test_rules_without_access_are_worth_nothing(store: Any, rbac: Any) -> None:
    rbac("ws").bind("view", ("User", "bob"))
    decision = Authorizer(store).authorize("ws", BOB, GET)
    assert not decision.allowed
    assert decision.reason == "access denied"


def test_access_alone_gives_discovery_only(rbac: Any, allowed: Any) -> None:
    rbac("ws").access(("Group", "devs"))
    for path in ("/api", "/apis", "/apis/apps/v1", "/openapi/v3", "/version", "/healthz", "/livez", "/readyz"):
        assert allowed(BOB, Attributes("get", path=path)), path
    assert not allowed(BOB, Attributes("get", path="/metrics"))
    assert not allowed(BOB, Attributes("post", path="/api"))
    assert not allowed(BOB, GET)
    create = Attributes("create", "authorization.k8s.io", "v1", "selfsubjectaccessreviews")
    assert allowed(BOB, create)


def test_nothing_is_inherited(rbac: Any, allowed: Any) -> None:
    rbac("parent").access(("User", "bob"))
    rbac("parent").bind("cluster-admin", ("User", "bob"))
    assert allowed(BOB, GET, "parent")
    assert not allowed(BOB, GET, "child")
    assert not allowed(BOB, GET, "*")


def test_cluster_admin_of_a_workspace_has_access_to_it(rbac: Any, allowed: Any) -> None:
    rbac("ws").bind("cluster-admin", ("User", "bob"))
    assert allowed(BOB, GET)


def test_a_role_binding_counts_in_its_namespace(rbac: Any, allowed: Any) -> None:
    ws = rbac("ws")
    ws.access(("User", "bob"))
    ws.role("ns", "reader", rule("get", "configmaps"), urls("get", "/metrics"))
    ws.bind("reader", ("User", "bob"), namespace="ns", kind="Role")
    assert allowed(BOB, GET)
    assert not allowed(BOB, Attributes("get", resource="configmaps", namespace="other", name="a"))
    assert not allowed(BOB, Attributes("list", resource="configmaps"))
    assert not allowed(BOB, Attributes("get", path="/metrics"))


def test_a_role_binding_to_a_cluster_role(rbac: Any, allowed: Any) -> None:
    ws = rbac("ws")
    ws.access(("User", "bob"))
    ws.bind("edit", ("Group", "devs"), namespace="ns")
    assert allowed(BOB, Attributes("update", "apps", "v1", "deployments", namespace="ns", name="a"))
    assert not allowed(BOB, Attributes("update", "apps", "v1", "deployments", namespace="x", name="a"))
    assert not allowed(BOB, Attributes("update", "", "v1", "resourcequotas", namespace="ns", name="a"))
    assert not allowed(BOB, Attributes("create", "rbac.authorization.k8s.io", "v1", "roles", namespace="ns"))


def test_resource_names_and_subresources(rbac: Any, allowed: Any) -> None:
    ws = rbac("ws")
    ws.access(("User", "bob"))
    ws.cluster_role(
        "r",
        rule("get", "configmaps", resourceNames=["a"]),
        rule("get", "pods/log"),
        rule("update", "*/scale", "apps"),
    )
    ws.bind("r", ("User", "bob"))
    assert allowed(BOB, GET)
    assert not allowed(BOB, Attributes("get", resource="configmaps", namespace="ns", name="b"))
    assert not allowed(BOB, Attributes("get", resource="configmaps", namespace="ns"))
    assert allowed(BOB, Attributes("get", resource="pods", subresource="log", namespace="ns", name="p"))
    assert not allowed(BOB, Attributes("get", resource="pods", namespace="ns", name="p"))
    assert allowed(BOB, Attributes("update", "apps", "v1", "deployments", "scale", "ns", "d"))
    assert not allowed(BOB, Attributes("update", "apps", "v1", "deployments", "status", "ns", "d"))


def test_service_account_subjects(rbac: Any, store: Any, allowed: Any) -> None:
    ws = rbac("ws")
    account = User("system:serviceaccount:ns:deployer", ("system:serviceaccounts",))
    ws.access(("Group", "system:serviceaccounts"))
    ws.bind("view", ("ServiceAccount", "deployer"), namespace="ns")
    assert allowed(account, GET)
    assert not allowed(User("system:serviceaccount:other:deployer", account.groups), GET)


def test_own_roles_aggregate_into_shipped_ones(rbac: Any, allowed: Any) -> None:
    ws = rbac("ws")
    ws.access(("User", "bob"))
    ws.bind("admin", ("User", "bob"))
    widgets = Attributes("get", "example.io", "v1", "widgets", namespace="ns", name="w")
    assert not allowed(BOB, widgets)
    labels = {"labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}}
    ws.cluster_role("widget-viewer", rule("get", "widgets", "example.io"), metadata=labels)
    assert allowed(BOB, widgets)  # view aggregates into edit, edit into admin


def test_a_circle_of_aggregation_ends(rbac: Any, allowed: Any) -> None:
    ws = rbac("ws")
    ws.access(("User", "bob"))
    for name, other in (("a", "b"), ("b", "a")):
        selectors = {"clusterRoleSelectors": [{"matchLabels": {"is": other}}]}
        ws.cluster_role(name, aggregationRule=selectors, metadata={"labels": {"is": name}})
    ws.bind("a", ("User", "bob"))
    assert not allowed(BOB, GET)


def test_changes_count_at_once_and_cost_only_their_workspace(rbac: Any, store: Any, allowed: Any) -> None:
    for cluster in ("ws", "other"):
        rbac(cluster).bind("cluster-admin", ("User", "bob"))
    assert allowed(BOB, GET, "ws")
    assert allowed(BOB, GET, "other")
    before = store.scans
    store.put("configmaps", "ws", {}, "a", "ns")
    store.put("clusterrolebindings.rbac.authorization.k8s.io", "ws", None, "b-cluster-admin")
    assert not allowed(BOB, GET, "ws")
    assert allowed(BOB, GET, "other")
    assert store.scans - before == 6


def test_reading_twice_scans_once(rbac: Any, store: Any, allowed: Any) -> None:
    rbac("ws").bind("cluster-admin", ("User", "bob"))
    for _ in range(5):
        allowed(BOB, GET)
    assert store.scans == 6


def test_outside_its_scope_a_user_is_nobody(rbac: Any, allowed: Any) -> None:
    for cluster in ("ws", "other"):
        rbac(cluster).bind("cluster-admin", ("User", "bob"))
    scoped = User("bob", (AUTHENTICATED,), extra={SCOPES: ("cluster:ws",)})
    assert allowed(scoped, GET, "ws")
    assert not allowed(scoped, GET, "other")
    narrowed = User("bob", (), extra={SCOPES: ("cluster:ws,cluster:other", "cluster:other")})
    assert not allowed(narrowed, GET, "ws")
    assert allowed(narrowed, GET, "other")
    assert not allowed(User("m", (MASTERS,), extra={SCOPES: ("cluster:ws",)}), GET, "other")


def test_a_target_knows_the_syncer_and_no_access(rbac: Any, allowed: Any) -> None:
    syncer = User("system:treeplane:syncer", (SYNCERS,))
    assert allowed(syncer, Attributes("patch", "apps", "v1", "deployments", namespace="a", name="b"), "target")
    assert not allowed(syncer, GET, "ws")
    rbac("target").bind("view", ("User", "bob"))
    assert allowed(BOB, GET, "target")


def test_rules_review(store: Any, rbac: Any) -> None:
    ws = rbac("ws")
    authorizer = Authorizer(store)
    assert authorizer.rules("ws", BOB, "ns").as_json()["resourceRules"] == []
    ws.access(("User", "bob"))
    ws.role("ns", "reader", rule("get", "configmaps", resourceNames=["a"]))
    ws.bind("reader", ("User", "bob"), namespace="ns", kind="Role")
    found = authorizer.rules("ws", BOB, "ns").as_json()
    wanted = {"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a"]}
    assert wanted in found["resourceRules"]
    assert wanted not in authorizer.rules("ws", BOB, "other").as_json()["resourceRules"]
    assert {"verbs": ["access"], "nonResourceURLs": ["/"]} in found["nonResourceRules"]
    assert found["incomplete"] is False
    everything = authorizer.rules("ws", ADMIN, "ns").as_json()
    assert {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]} in everything["resourceRules"]


@pytest.mark.parametrize(
    ("url", "path", "covered"),
    [("/a/*", "/a/b", True), ("/a*", "/abc", True), ("*", "/x", True), ("/a", "/a/b", False), ("/a/*", "/a", False)],
)
def test_urls(url: str, path: str, covered: bool) -> None:
    assert Rule.of(urls("get", url)).covers(Attributes("get", path=path)) is covered


def test_a_resource_rule_covers_no_url() -> None:
    assert not Rule.of(rule("*", "*", "*")).covers(Attributes("get", path="/metrics"))
    assert not Rule.of(urls("*", "*")).covers(GET)


def test_shipped_roles_refer_to_labels_that_exist() -> None:
    assert {"cluster-admin", "admin", "edit", "view", "system:discovery"} <= set(CLUSTER_ROLES)


words = st.sampled_from(["a", "b", "c", "*"])
lists = st.lists(words, max_size=3)
rules_of = st.builds(lambda v, g, r: Rule(frozenset(v), frozenset(g), frozenset(r)), lists, lists, lists)
asked_for = st.builds(lambda v, g, r: Attributes(v, g, "v1", r), *[st.sampled_from(["a", "b", "c"])] * 3)


@given(rules_of, asked_for)
def test_a_star_never_covers_less(narrow: Rule, asked: Attributes) -> None:
    wide = Rule(narrow.verbs | {"*"}, narrow.groups | {"*"}, narrow.resources | {"*"})
    assert wide.covers(asked)
    if narrow.covers(asked):
        assert Rule(narrow.verbs, narrow.groups, narrow.resources | {"x"}).covers(asked)


def test_what_is_remembered_ends_with_the_rules_it_came_from(store: Any, rbac: Any) -> None:
    authorizer = Authorizer(store)
    ws, other = rbac("ws"), rbac("other")
    for workspace in (ws, other):
        workspace.access(("User", "bob"))
    ws.cluster_role("r", rule("get", "configmaps"))
    ws.bind("r", ("User", "bob"))
    for _ in range(2):
        assert authorizer.authorize("ws", BOB, GET).allowed
        assert not authorizer.authorize("other", BOB, GET).allowed
    ws.cluster_role("r", rule("get", "secrets"))
    assert not authorizer.authorize("ws", BOB, GET).allowed
    other.bind("view", ("User", "bob"))
    assert authorizer.authorize("other", BOB, GET).allowed
    assert not authorizer.authorize("ws", BOB, GET).allowed


def test_what_a_warrant_says_is_a_right_of_who_bears_it(rbac: Any, allowed: Any) -> None:
    for cluster in ("ws", "other"):
        rbac(cluster).bind("cluster-admin", ("User", "bob"))
    within = '{"user": "bob", "extra": {"authentication.kcp.io/scopes": ["cluster:ws"]}}'
    user = User("eve", (AUTHENTICATED,), extra={WARRANT: (within,)})
    assert allowed(user, GET, "ws")
    assert not allowed(user, GET, "other")
    assert allowed(User("eve", extra={WARRANT: (f'{{"groups": ["{KCP_ADMIN}"]}}',)}), GET, "other")
    # system:masters is a name among others there: what no role gives, no warrant does.
    master = User("eve", extra={WARRANT: (f'{{"groups": ["{MASTERS}"]}}',)})
    assert not allowed(master, GET, "*")
    assert not allowed(master, Attributes("update", "apis.kcp.io", "v1alpha1", "apibindings", "status", name="a"))
