"""ServiceAccount tokens over the API: asked for, used, reviewed, and worthless where they should be."""

import base64
import json
from typing import Any

import pytest

ISSUER = "https://kcp.default.svc"
SHOP = "/clusters/root:shop"
EDGE = "/targets/root:edge"
WHOAMI = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
READ = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["configmaps"]}


def at(name: str, subresource: str = "/token", world: str = "") -> str:
    return f"{world}/api/v1/namespaces/default/serviceaccounts/{name}{subresource}"


@pytest.fixture
def accounts(api: Any) -> Any:
    """`robot` in root, in root:shop and in the target edge: three accounts of one name."""
    api.put(api.manifest("v1 ServiceAccount", "robot", "default"))
    api.put(api.manifest("v1 ServiceAccount", "robot", "default", api.SHOP))
    api.put(api.manifest("v1 ServiceAccount", "robot", "default", "target"), store=api.target)
    for cluster in ("root", api.SHOP):
        rbac = "rbac.authorization.k8s.io"
        role = api.manifest(f"{rbac}/v1 ClusterRole", "robots", cluster=cluster, rules=[READ])
        binding = api.manifest(
            f"{rbac}/v1 ClusterRoleBinding", "robots", cluster=cluster,
            roleRef={"apiGroup": rbac, "kind": "ClusterRole", "name": "robots"},
            subjects=[{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}],
        )  # fmt: skip
        api.put(role, binding)
    return api


async def token(api: Any, world: str = "", **spec: Any) -> str:
    reply = await api.call("POST", at("robot", world=world), {"spec": spec})
    assert reply.status == 201, reply.body
    return reply.json["status"]["token"]


def claims(text: str) -> Any:
    body = text.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))


def test_a_token_says_whose_it_is(accounts: Any, run: Any) -> None:
    reply = run(accounts.call("POST", at("robot"), {"spec": {"audiences": ["vault"], "expirationSeconds": 900}}))
    assert reply.json["kind"] == "TokenRequest"
    assert reply.json["spec"] == {"audiences": ["vault"], "expirationSeconds": 900, "boundObjectRef": None}
    found = claims(reply.json["status"]["token"])
    assert (found["iss"], found["aud"], found["exp"] - found["iat"]) == (ISSUER, ["vault"], 900)
    assert found["sub"] == "system:serviceaccount:default:robot"
    assert found["kubernetes.io"] == {
        "clusterName": "root",
        "namespace": "default",
        "serviceaccount": {"name": "robot", "uid": "uid-robot"},
    }
    assert claims(run(token(accounts)))["aud"] == [ISSUER]


def test_its_bearer_is_the_account_and_has_access_to_its_own_workspace(accounts: Any, run: Any) -> None:
    bearer = run(token(accounts, SHOP))
    reply = run(accounts.call("POST", f"{SHOP}{WHOAMI}", {}, user=bearer))
    user = reply.json["status"]["userInfo"]
    assert (user["username"], user["uid"]) == ("system:serviceaccount:default:robot", "uid-robot")
    groups = ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]
    assert user["groups"] == groups
    assert user["extra"]["authentication.kubernetes.io/credential-id"][0].startswith("JTI=")
    assert run(accounts.call("GET", f"{SHOP}/api/v1/configmaps", user=bearer)).status == 200
    assert run(accounts.call("GET", f"{SHOP}/api/v1/secrets", user=bearer)).status == 403


def test_elsewhere_it_is_nobody_and_never_the_local_account(accounts: Any, run: Any) -> None:
    bearer = run(token(accounts, SHOP))
    reply = run(accounts.call("GET", "/clusters/root/api/v1/configmaps", user=bearer))
    assert reply.status == 403
    assert 'User "system:anonymous" cannot list' in reply.message
    assert run(accounts.call("GET", f"{EDGE}/api/v1/configmaps", user=bearer)).status == 403
    # The administrator of the other workspace may let it in by its full name.
    full = f"system:kcp:serviceaccount:{accounts.SHOP}:default:robot"
    accounts.allow(full, READ)
    assert run(accounts.call("GET", "/clusters/root/api/v1/configmaps", user=bearer)).status == 200
    user = run(accounts.call("POST", f"/clusters/root{WHOAMI}", {}, user=bearer)).json["status"]["userInfo"]
    assert user["username"] == "system:anonymous"
    assert user["groups"] == ["system:authenticated", f"system:cluster:{accounts.SHOP}"]


def test_a_path_without_workspace_is_its_own_workspace(accounts: Any, run: Any) -> None:
    reply = run(accounts.call("GET", "/api/v1/configmaps", user=run(token(accounts, SHOP))))
    assert [item["metadata"]["name"] for item in reply.json["items"]] == ["s"]


def test_a_target_has_accounts_of_its_own(accounts: Any, run: Any) -> None:
    bearer = run(token(accounts, EDGE))
    assert claims(bearer)["kubernetes.io"]["clusterName"] == "target:root:edge"
    user = run(accounts.call("POST", f"{EDGE}{WHOAMI}", {}, user=bearer)).json["status"]["userInfo"]
    assert user["username"] == "system:serviceaccount:default:robot"
    assert 'User "system:anonymous"' in run(accounts.call("GET", "/clusters/root/api/v1/pods", user=bearer)).message


@pytest.mark.parametrize(
    ("spec", "status", "text"),
    [
        ({"expirationSeconds": 60}, 422, "may not specify a duration less than 10 minutes"),
        ({"expirationSeconds": 1 << 33}, 422, "may not specify a duration larger than 2^32 seconds"),
        ({"boundObjectRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}}, 400, "cannot bind token"),
        ({"boundObjectRef": {"apiVersion": "v1", "kind": "Secret", "name": "no"}}, 404, 'secrets "no" not found'),
        ({"boundObjectRef": {"apiVersion": "v1", "kind": "Secret", "name": "s", "uid": "x"}}, 409, "does not match"),
        ({"audiences": "vault"}, 400, "audiences"),
    ],
)
def test_requests_that_are_refused(accounts: Any, run: Any, spec: Any, status: int, text: str) -> None:
    accounts.put(accounts.manifest("v1 Secret", "s", "default"))
    reply = run(accounts.call("POST", at("robot"), {"spec": spec}))
    assert (reply.status, text in reply.message) == (status, True), reply.message


def test_who_may_ask_for_one(accounts: Any, run: Any) -> None:
    accounts.allow("ann", READ)
    reply = run(accounts.call("POST", at("robot"), {"spec": {}}, user="ann"))
    assert reply.message == (
        'serviceaccounts "robot" is forbidden: User "ann" cannot create resource "serviceaccounts/token" '
        'in API group "" in the namespace "default": access denied'
    )
    assert run(accounts.call("POST", at("nobody"), {"spec": {}})).status == 404
    assert run(accounts.call("GET", at("robot"))).status == 405


def test_it_ends_with_its_account_and_with_what_it_is_bound_to(accounts: Any, run: Any) -> None:
    secret = accounts.manifest("v1 Secret", "s", "default")
    accounts.put(secret)
    bound = run(token(accounts, boundObjectRef={"apiVersion": "v1", "kind": "Secret", "name": "s"}))
    free = run(token(accounts))
    assert claims(bound)["kubernetes.io"]["secret"] == {"name": "s", "uid": "uid-s"}
    for bearer in (bound, free):
        assert run(accounts.call("GET", "/api/v1/configmaps", user=bearer)).status == 200
    accounts.delete(secret)
    assert run(accounts.call("GET", "/api/v1/configmaps", user=bound)).status == 401
    robot = accounts.manifest("v1 ServiceAccount", "robot", "default")
    robot["metadata"]["uid"] = "another"
    accounts.put(robot)
    assert run(accounts.call("GET", "/api/v1/configmaps", user=free)).status == 401


def test_a_pod_has_to_run_as_the_account(accounts: Any, run: Any) -> None:
    pod = accounts.manifest("v1 Pod", "p", "default", "target", spec={"serviceAccountName": "other", "containers": []})
    accounts.put(pod, store=accounts.target)
    ref = {"apiVersion": "v1", "kind": "Pod", "name": "p"}
    reply = run(accounts.call("POST", at("robot", world=EDGE), {"spec": {"boundObjectRef": ref}}))
    assert "running with different serviceaccount name" in reply.message
    pod["spec"]["serviceAccountName"] = "robot"
    accounts.put(pod, store=accounts.target)
    bearer = run(token(accounts, EDGE, boundObjectRef=ref))
    user = run(accounts.call("POST", f"{EDGE}{WHOAMI}", {}, user=bearer)).json["status"]["userInfo"]
    assert user["extra"]["authentication.kubernetes.io/pod-name"] == ["p"]


def test_another_audience_is_not_ours_but_can_be_reviewed(accounts: Any, run: Any) -> None:
    bearer = run(token(accounts, audiences=["vault"]))
    assert run(accounts.call("GET", "/api/v1/configmaps", user=bearer)).status == 401
    reviews = "/apis/authentication.k8s.io/v1/tokenreviews"

    def review(world: str, *audiences: str) -> Any:
        spec = {"token": bearer, "audiences": list(audiences)}
        return run(accounts.call("POST", world + reviews, {"spec": spec})).json["status"]

    assert review("")["error"] == "invalid bearer token"
    found = review("", "vault", "other")
    assert (found["authenticated"], found["audiences"]) == (True, ["vault"])
    assert found["user"]["username"] == "system:serviceaccount:default:robot"
    assert review(SHOP, "vault")["user"]["username"] == "system:anonymous"


def test_a_token_is_not_what_it_says_but_what_was_signed(accounts: Any, run: Any) -> None:
    head, body, signature = run(token(accounts)).split(".")
    forged = dict(claims(f".{body}."), sub="system:serviceaccount:default:boss")
    other = base64.urlsafe_b64encode(json.dumps(forged).encode()).decode().rstrip("=")
    none = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
    for text in (f"{head}.{other}.{signature}", f"{none}.{body}.", f"{head}.{body}.", "a.b.c", "..", "é.é.é"):
        spec = {"spec": {"token": text}}
        status = run(accounts.call("POST", "/apis/authentication.k8s.io/v1/tokenreviews", spec)).json["status"]
        assert status["authenticated"] is False, text


def test_how_others_verify_it(accounts: Any, run: Any) -> None:
    found = run(accounts.get("/.well-known/openid-configuration")).json
    assert found["issuer"] == ISSUER
    assert found["jwks_uri"].endswith("/openid/v1/jwks")
    assert found["id_token_signing_alg_values_supported"] == ["ES256"]
    reply = run(accounts.get("/openid/v1/jwks"))
    assert reply.headers["content-type"] == "application/jwk-set+json"
    [key] = reply.json["keys"]
    head = run(token(accounts)).split(".")[0]
    assert json.loads(base64.urlsafe_b64decode(head + "=="))["kid"] == key["kid"]
    assert "d" not in key
    accounts.allow("ann")
    assert run(accounts.call("GET", "/openid/v1/jwks", user="ann")).status == 403
    assert run(accounts.call("GET", f"{SHOP}/openid/v1/jwks", user=run(token(accounts, SHOP)))).status == 200


def test_discovery_has_the_subresource(accounts: Any, run: Any) -> None:
    found = {r["name"]: r for r in run(accounts.get("/api/v1")).json["resources"]}["serviceaccounts/token"]
    assert (found["group"], found["kind"], found["verbs"]) == ("authentication.k8s.io", "TokenRequest", ["create"])


def test_openapi_has_the_subresource(accounts: Any, run: Any) -> None:
    document = run(accounts.get("/openapi/v3/api/v1")).json
    operation = document["paths"]["/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"]["post"]
    request = operation["requestBody"]["content"]["*/*"]["schema"]["$ref"].rpartition("/")[2]
    assert request == "io.k8s.api.authentication.v1.TokenRequest"
    assert "spec" in document["components"]["schemas"][request]["properties"]


def test_while_the_fleet_is_loaded_nobody_is_told_that_the_account_is_gone(accounts: Any, run: Any) -> None:
    gone, there = run(token(accounts)), run(token(accounts, SHOP))
    robot = accounts.manifest("v1 ServiceAccount", "robot", "default")
    accounts.delete(robot)
    accounts.put_fleet(loaded=False)
    reply = run(accounts.call("GET", "/api/v1/configmaps", user=gone))
    assert (reply.status, reply.headers["retry-after"]) == (503, "1")
    assert run(accounts.call("GET", "/api/v1/configmaps", user=there)).status == 200
    accounts.put_fleet(loaded=True)
    assert run(accounts.call("GET", "/api/v1/configmaps", user=gone)).status == 401
