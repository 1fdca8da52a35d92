"""Requests that once were answered with 500 or with silence, each as small as it can be."""

from __future__ import annotations

from typing import Any

import pytest

LAB, BASE = "labcluster000000", "/clusters/root:lab"
MAPS = f"{BASE}/api/v1/namespaces/default/configmaps"
SETS = f"{BASE}/apis/apps/v1/namespaces/default/replicasets"
LONG = "9" * 5000


@pytest.fixture
def lab(api: Any) -> Any:
    api.put_workspace("root:lab", LAB, writes="Store", builtins="Kubernetes")
    api.put(
        api.manifest("v1 Namespace", "default", cluster=LAB),
        api.manifest("v1 ConfigMap", "a", "default", LAB, data={"k": "1"}),
        api.manifest("apps/v1 ReplicaSet", "a", "default", LAB, spec={"replicas": 1, "selector": {}, "template": {}}),
    )
    return api


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"{MAPS}/a%00b", 404),
        ("/clusters/a\0:b/api/v1/configmaps", 404),
        (f"{MAPS}?fieldSelector=metadata.name%3Da%00b", 200),
        (f"{MAPS}?limit={LONG}", 400),
        (f"{MAPS}?limit={2**64}", 400),
        (f"{MAPS}?limit=1_0", 400),
        (f"{MAPS}?limit=%EF%BC%99", 400),
        (f"{MAPS}?resourceVersion={LONG}", 400),
        (f"{MAPS}?resourceVersion={2**64}", 400),
        (f"{MAPS}/a?resourceVersion={LONG}", 400),
    ],
)
def test_reads(lab: Any, run: Any, path: str, status: int) -> None:
    assert run(lab.get(path.replace("%00", "\0") if "?" not in path else path)).status == status


def test_a_watch_of_a_thousand_years(lab: Any, run: Any) -> None:
    async def scenario() -> None:
        watch = lab.watch(f"{MAPS}?watch=1&timeoutSeconds={2**63 - 1}")
        assert await watch.seen(1) == [("ADDED", "a")]
        await watch.leave()

    run(scenario())


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_metadata_may_be_null(lab: Any, run: Any, method: str) -> None:
    path = MAPS if method == "POST" else f"{MAPS}/a"
    kind = "application/merge-patch+json" if method == "PATCH" else ""
    reply = run(lab.call(method, path, {"metadata": None, "data": {"x": "y"}}, kind=kind))
    assert reply.status == {"POST": 422, "PUT": 200, "PATCH": 200}[method]


@pytest.mark.parametrize("body", [{"spec": [1]}, {"spec": 1}, {"metadata": "x"}, {"spec": {"replicas": "x"}}])
def test_a_scale_of_wrong_types(lab: Any, run: Any, body: Any) -> None:
    assert run(lab.call("PUT", f"{SETS}/a/scale", body)).status == 400
    assert run(lab.call("PATCH", f"{SETS}/a/scale", body, kind="application/merge-patch+json")).status == 400


def test_a_name_that_the_store_cannot_hold(lab: Any, run: Any) -> None:
    roles = f"{BASE}/apis/rbac.authorization.k8s.io/v1/clusterroles"
    for name in ("x" * 70_000, "a\0b"):
        assert run(lab.call("POST", roles, {"metadata": {"name": name}})).status == 422


def test_a_patch_that_nests_without_end(lab: Any, run: Any) -> None:
    kind = "application/json-patch+json"
    deep = [{"op": "add", "path": "/metadata/annotations/x", "value": {}}]
    deep += [{"op": "move", "from": "/metadata", "path": "/x"}, {"op": "copy", "from": "/x", "path": "/x/y"}] * 400
    assert run(lab.call("PATCH", f"{MAPS}/a", deep, kind=kind)).status == 422


def test_keys_of_yaml_that_stand_twice(lab: Any, run: Any) -> None:
    body = b"metadata: {name: yy}\ndata: {k: v,\n k: w}\nzz: 1\n"
    reply = run(lab.call("POST", f"{MAPS}?fieldValidation=Strict", body, kind="application/yaml"))
    assert (reply.status, reply.message) == (
        400,
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: yaml: unmarshal errors:\n'
        '  line 3: key "k" already set in map, unknown field "zz"',
    )
