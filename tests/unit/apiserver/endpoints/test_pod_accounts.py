"""What a Pod gets of its ServiceAccount when it is created through the API."""

from typing import Any

import pytest

PODS = "/targets/root:edge/api/v1/namespaces/default/pods"
MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


@pytest.fixture
def account(api: Any) -> Any:
    def put(name: str, **content: Any) -> None:
        api.put(api.manifest("v1 ServiceAccount", name, "default", "target", **content), store=api.target)

    put("default")
    return put


def pod(**spec: Any) -> Any:
    containers = [
        {"name": "a", "image": "i"},
        {"name": "b", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}]},
    ]
    return {
        "metadata": {"name": "p"},
        "spec": {"containers": containers, "volumes": [{"name": "v", "emptyDir": {}}], **spec},
    }


def mounts(made: Any) -> list[list[str]]:
    return [[m["mountPath"] for m in c.get("volumeMounts", ())] for c in made["spec"]["containers"]]


def test_every_container_gets_the_token(api: Any, run: Any, account: Any) -> None:
    made = run(api.call("POST", PODS, pod())).json
    assert made["spec"]["serviceAccountName"] == made["spec"]["serviceAccount"] == "default"
    assert mounts(made) == [[MOUNT], ["/v", MOUNT]]
    _, volume = made["spec"]["volumes"]
    assert volume["name"].startswith("kube-api-access-")
    assert made["spec"]["containers"][0]["volumeMounts"][0] == {
        "name": volume["name"], "readOnly": True, "mountPath": MOUNT,
    }  # fmt: skip
    sources = volume["projected"]["sources"]
    assert [next(iter(source)) for source in sources] == ["serviceAccountToken", "configMap", "downwardAPI"]
    assert sources[0]["serviceAccountToken"] == {"expirationSeconds": 3607, "path": "token"}


@pytest.mark.parametrize(
    ("of_account", "of_pod", "mounted"),
    [(None, None, True), (True, None, True), (False, None, False), (False, True, True), (True, False, False)],
)
def test_either_may_decline(api: Any, run: Any, account: Any, of_account: Any, of_pod: Any, mounted: bool) -> None:
    account("robot", **({} if of_account is None else {"automountServiceAccountToken": of_account}))
    spec = {} if of_pod is None else {"automountServiceAccountToken": of_pod}
    made = run(api.call("POST", PODS, pod(serviceAccountName="robot", **spec))).json
    assert (MOUNT in mounts(made)[0]) is mounted
    assert len(made["spec"]["volumes"]) == 1 + mounted


def test_what_is_mounted_there_already_stays(api: Any, run: Any, account: Any) -> None:
    spec = pod()
    for container in spec["spec"]["containers"]:
        container["volumeMounts"] = [{"name": "v", "mountPath": MOUNT}]
    made = run(api.call("POST", PODS, spec)).json
    assert len(made["spec"]["volumes"]) == 1


def test_pull_secrets_of_the_account(api: Any, run: Any, account: Any) -> None:
    account("robot", imagePullSecrets=[{"name": "registry"}])
    made = run(api.call("POST", PODS, pod(serviceAccountName="robot"))).json
    assert made["spec"]["imagePullSecrets"] == [{"name": "registry"}]


def test_an_account_that_is_not_there(api: Any, run: Any, account: Any) -> None:
    reply = run(api.call("POST", PODS, pod(serviceAccountName="nope")))
    text = 'pods "p" is forbidden: error looking up service account default/nope: serviceaccount "nope" not found'
    assert (reply.status, reply.message) == (403, text)


@pytest.mark.parametrize("spec", ["x", {"containers": "x"}, {"containers": [1]}, {"containers": [], "volumes": [3]}])
def test_what_is_no_pod_is_still_an_error_of_the_client(api: Any, run: Any, account: Any, spec: Any) -> None:
    reply = run(api.call("POST", PODS, {"metadata": {"name": "p"}, "spec": spec}))
    assert reply.status in (400, 422)


def test_applied_pods_get_it_too_and_applying_again_changes_nothing(api: Any, run: Any, account: Any) -> None:
    applied = {"apiVersion": "v1", "kind": "Pod", **pod()}
    path, kind = f"{PODS}/p?fieldManager=m", "application/apply-patch+yaml"
    first = run(api.call("PATCH", path, applied, kind=kind)).json
    assert mounts(first) == [[MOUNT], ["/v", MOUNT]]
    assert run(api.call("PATCH", path, applied, kind=kind)).json == first


def test_nobody_owns_what_the_account_gives(api: Any, run: Any, account: Any) -> None:
    """Else who applies the same manifest server-side later would take the token away."""
    made = run(api.call("POST", f"{PODS}?fieldManager=me", pod())).json
    (entry,) = made["metadata"]["managedFields"]
    owned = entry["fieldsV1"]["f:spec"]
    assert "f:serviceAccountName" not in owned
    assert list(owned["f:volumes"]) == [".", 'k:{"name":"v"}']
    assert "f:volumeMounts" not in owned["f:containers"]['k:{"name":"a"}']
    assert "f:terminationMessagePath" in owned["f:containers"]['k:{"name":"a"}']  # defaults are whose the object is
