from typing import Any

REVIEWS = "/apis/authorization.k8s.io/v1"
READ = {"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"]}


def test_may_i(api: Any, run: Any) -> None:
    api.allow("ann", READ)
    for verb, allowed in (("get", True), ("delete", False)):
        spec = {"resourceAttributes": {"verb": verb, "resource": "configmaps", "namespace": "default"}}
        reply = run(api.call("POST", f"{REVIEWS}/selfsubjectaccessreviews", {"spec": spec}, user="ann"))
        assert (reply.status, reply.json["status"]["allowed"]) == (201, allowed)
        assert reply.json["kind"] == "SelfSubjectAccessReview"
    both = {"spec": {"resourceAttributes": {}, "nonResourceAttributes": {}}}
    assert run(api.call("POST", f"{REVIEWS}/selfsubjectaccessreviews", both, user="ann")).status == 422


def test_may_they(api: Any, run: Any) -> None:
    api.allow("ann", READ)
    spec = {"user": "ann", "resourceAttributes": {"verb": "get", "resource": "configmaps", "namespace": "default"}}
    assert run(api.call("POST", f"{REVIEWS}/subjectaccessreviews", {"spec": spec})).json["status"]["allowed"]
    path = {"user": "bob", "nonResourceAttributes": {"verb": "get", "path": "/api"}}
    assert not run(api.call("POST", f"{REVIEWS}/subjectaccessreviews", {"spec": path})).json["status"]["allowed"]
    local = f"{REVIEWS}/namespaces/default/localsubjectaccessreviews"
    assert run(api.call("POST", local, {"spec": spec})).json["status"]["allowed"]
    spec["resourceAttributes"]["namespace"] = "other"
    assert run(api.call("POST", local, {"spec": spec})).status == 422
    assert run(api.call("POST", f"{REVIEWS}/subjectaccessreviews", {"spec": {}})).status == 422
    assert run(api.call("POST", f"{REVIEWS}/subjectaccessreviews", {"spec": spec}, user="ann")).status == 403


def test_a_review_has_no_table(api: Any, run: Any) -> None:
    path = f"{REVIEWS}/selfsubjectaccessreviews"
    spec = {"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}}
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    refused = run(api.call("POST", path, spec, accept=table))
    assert (refused.status, refused.json["reason"]) == (406, "NotAcceptable")
    whole = run(api.call("POST", path, spec, accept=f"{table},application/json"))
    assert (whole.status, whole.json["kind"]) == (201, "SelfSubjectAccessReview")
    assert run(api.call("POST", path, spec, accept="application/yaml")).headers["content-type"] == "application/yaml"


def test_what_may_i(api: Any, run: Any) -> None:
    api.allow("ann", READ)
    path = f"{REVIEWS}/selfsubjectrulesreviews"
    status = run(api.call("POST", path, {"spec": {"namespace": "default"}}, user="ann")).json["status"]
    assert status["incomplete"] is False
    assert {"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"]} in status["resourceRules"]
    assert run(api.call("POST", path, {"spec": {}}, user="ann")).status == 400


def test_who_am_i(api: Any, run: Any) -> None:
    api.allow("ann")
    reply = run(api.call("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, user="ann"))
    assert reply.status == 201
    assert reply.json["status"]["userInfo"]["username"] == "ann"


def test_whose_token(api: Any, run: Any) -> None:
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    known = run(api.call("POST", path, {"spec": {"token": "ann"}})).json["status"]
    assert (known["authenticated"], known["user"]["username"]) == (True, "ann")
    unknown = run(api.call("POST", path, {"spec": {"token": "nobody"}})).json["status"]
    assert unknown["authenticated"] is False
    assert run(api.call("POST", path, {"spec": {}})).status == 422


RBAC = "rbac.authorization.k8s.io"


def test_reviews_that_make_no_sense(api: Any, run: Any) -> None:
    local = f"{REVIEWS}/namespaces/default/localsubjectaccessreviews"
    path, resource = {"verb": "get", "path": "/api"}, {"verb": "get", "resource": "pods", "namespace": "default"}
    for where, spec, text in (
        (local, {"user": "ann", "nonResourceAttributes": path}, "disallowed on this kind of request"),
        (local, {"user": "ann", "resourceAttributes": {**resource, "namespace": "x"}}, "must match metadata.namespace"),
        (f"{REVIEWS}/subjectaccessreviews", {"user": "ann"}, "exactly one of nonResourceAttributes or"),
        (f"{REVIEWS}/subjectaccessreviews", {"resourceAttributes": resource}, "at least one of user or group"),
        (
            f"{REVIEWS}/subjectaccessreviews",
            {"user": "ann", "resourceAttributes": resource, "nonResourceAttributes": path},
            "cannot be specified in combination with resourceAttributes",
        ),
    ):
        reply = run(api.call("POST", where, {"spec": spec}))
        assert (reply.status, text in reply.message) == (422, True), reply.message


def test_the_reason_names_binding_role_and_subject(api: Any, run: Any) -> None:
    api.allow("ann", READ)
    spec = {"user": "ann", "resourceAttributes": {"verb": "get", "resource": "configmaps"}}
    status = run(api.call("POST", f"{REVIEWS}/subjectaccessreviews", {"spec": spec})).json["status"]
    assert status["reason"] == 'RBAC: allowed by ClusterRoleBinding "ann" of ClusterRole "ann" to User "ann"'


def test_a_binding_to_no_role_is_said(api: Any, run: Any) -> None:
    api.allow("ann")
    reference = {"apiGroup": RBAC, "kind": "Role", "name": "gone"}
    subjects = [{"kind": "User", "apiGroup": RBAC, "name": "ann"}]
    binding = api.manifest(f"{RBAC}/v1 RoleBinding", "b", "default", roleRef=reference, subjects=subjects)
    api.put(binding)
    missing = 'role.rbac.authorization.k8s.io "gone" not found'
    reply = run(api.call("GET", "/api/v1/namespaces/default/secrets", user="ann"))
    assert reply.message.endswith(f'in the namespace "default": RBAC: {missing}')
    spec = {"spec": {"namespace": "default"}}
    status = run(api.call("POST", f"{REVIEWS}/selfsubjectrulesreviews", spec, user="ann")).json["status"]
    assert (status["incomplete"], status["evaluationError"]) == (True, missing)
    spec = {"spec": {"namespace": "other"}}
    status = run(api.call("POST", f"{REVIEWS}/selfsubjectrulesreviews", spec, user="ann")).json["status"]
    assert status["incomplete"] is False


def test_a_plain_member_has_the_self_reviews_and_discovery(api: Any, run: Any) -> None:
    api.allow("ann")
    spec = {"spec": {"namespace": "default"}}
    status = run(api.call("POST", f"{REVIEWS}/selfsubjectrulesreviews", spec, user="ann")).json["status"]
    reviews = {r for rule in status["resourceRules"] for r in rule["resources"]}
    assert reviews == {"selfsubjectaccessreviews", "selfsubjectreviews", "selfsubjectrulesreviews"}
    assert {verb for rule in status["resourceRules"] for verb in rule["verbs"]} == {"create"}
    access, public, discovery = sorted(status["nonResourceRules"], key=lambda rule: len(rule["nonResourceURLs"]))
    assert access == {"verbs": ["access"], "nonResourceURLs": ["/"]}
    assert "/version" in public["nonResourceURLs"]
    assert {"/api/*", "/apis", "/openapi"} <= set(discovery["nonResourceURLs"])
    assert status["incomplete"] is False


def test_what_rbac_says_of_somebody_without_access(api: Any, run: Any) -> None:
    api.allow("ann", READ)
    role = api.manifest(f"{RBAC}/v1 ClusterRole", "reader", rules=[READ])
    binding = api.manifest(
        f"{RBAC}/v1 ClusterRoleBinding", "reader",
        roleRef={"apiGroup": RBAC, "kind": "ClusterRole", "name": "reader"},
        subjects=[{"kind": "User", "apiGroup": RBAC, "name": "bob"}],
    )  # fmt: skip
    api.put(role, binding)
    spec = {"spec": {"user": "bob", "resourceAttributes": {"verb": "get", "resource": "configmaps"}}}
    path = f"{REVIEWS}/subjectaccessreviews"
    assert run(api.call("POST", path, spec)).json["status"] == {"allowed": False, "reason": "access denied"}
    deep = {"x_kcp_internal_deep_subjectaccessreview": "true"}
    assert run(api.call("POST", path, spec, **deep)).json["status"]["allowed"] is True


def test_a_foreign_service_account_is_reviewed_as_nobody(api: Any, run: Any) -> None:
    api.put(api.manifest("v1 ServiceAccount", "robot", "default"))
    subjects = [{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}]
    role = api.manifest(f"{RBAC}/v1 ClusterRole", "reader", rules=[READ])
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "reader"}
    api.put(role, api.manifest(f"{RBAC}/v1 ClusterRoleBinding", "r", roleRef=reference, subjects=subjects))
    spec = {
        "user": "system:serviceaccount:default:robot",
        "groups": ["system:serviceaccounts"],
        "resourceAttributes": {"verb": "get", "resource": "configmaps"},
    }
    for cluster, allowed in (("root", True), (api.SHOP, False)):
        extra = {"extra": {"authentication.kcp.io/cluster-name": [cluster]}}
        reply = run(api.call("POST", f"{REVIEWS}/subjectaccessreviews", {"spec": {**spec, **extra}}))
        assert reply.json["status"]["allowed"] is allowed


def test_a_review_of_somebody_counts_their_scopes_and_warrants(api: Any, run: Any) -> None:
    """As of whoever comes with such an identity."""

    def allowed(**spec: Any) -> bool:
        asked = {"spec": {"user": "u", **spec, "resourceAttributes": {"verb": "get", "resource": "configmaps"}}}
        reply = run(api.call("POST", f"/clusters/root:shop{REVIEWS}/subjectaccessreviews", asked))
        return bool(reply.json["status"]["allowed"])

    admin, scopes, warrant = "system:kcp:admin", "authentication.kcp.io/scopes", "authorization.kcp.io/warrant"
    home, robot = "authentication.kcp.io/cluster-name", "system:serviceaccount:default:default"
    borrowed = f'{{"user": "v", "groups": ["{admin}"]}}'
    assert allowed(groups=[admin])
    assert allowed(groups=[admin], extra={scopes: [f"cluster:{api.SHOP},cluster:another"]})
    assert not allowed(groups=[admin], extra={scopes: [f"cluster:{api.SHOP}", "cluster:another"]})
    assert not allowed(groups=[admin], extra={scopes: ["cluster:root"]})
    assert allowed(groups=[], extra={home: ["other"], warrant: [borrowed]})
    assert allowed(user=robot, groups=[admin])
    assert not allowed(user=robot, groups=[admin], extra={home: ["other"]})
    assert allowed(user=robot, groups=[], extra={home: ["other"], warrant: [borrowed]})


def test_the_deep_header_is_masters_alone(api: Any, run: Any) -> None:
    api.allow("ann", {"verbs": ["create"], "apiGroups": ["authorization.k8s.io"], "resources": ["*"]})
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"}
    subjects = [{"kind": "User", "apiGroup": RBAC, "name": "bob"}]
    api.put(api.manifest(f"{RBAC}/v1 ClusterRoleBinding", "view", roleRef=reference, subjects=subjects))
    spec = {"spec": {"user": "bob", "resourceAttributes": {"verb": "get", "resource": "configmaps"}}}
    path, deep = f"{REVIEWS}/subjectaccessreviews", {"x_kcp_internal_deep_subjectaccessreview": "true"}
    assert run(api.call("POST", path, spec, **deep)).json["status"]["allowed"] is True
    assert run(api.call("POST", path, spec, user="ann", **deep)).json["status"]["allowed"] is False
    # It is no way into a workspace, whoever sends it with something else.
    assert run(api.get("/api/v1/configmaps", user="bob", **deep)).status == 403
