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
