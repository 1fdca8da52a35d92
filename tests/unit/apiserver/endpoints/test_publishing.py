"""OpenAPI v2 over HTTP, and how soon a new kind stands in discovery and in both OpenAPI documents."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
SOON = 0.1
"""Seconds for the change and all eight documents, of the best of several tries: other tests share the machine."""
CRDS = "apiextensions.k8s.io/v1 CustomResourceDefinition"
ESTABLISHED = {"conditions": [{"type": "Established", "status": "True"}]}


def schema_of(field: str) -> dict[str, Any]:
    spec = {"type": "object", "properties": {field: {"type": "string"}}}
    return {"type": "object", "properties": {"spec": spec}}


def crd(api: Any, field: str = "size", cluster: str = "root") -> dict[str, Any]:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema_of(field)}}
    names = {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"}
    spec = {"group": "z.io", "scope": "Namespaced", "names": names, "versions": [version]}
    found: dict[str, Any] = api.manifest(CRDS, "gadgets.z.io", cluster=cluster, spec=spec, status=ESTABLISHED)
    return found


def binding(api: Any) -> list[dict[str, Any]]:
    """An APIBinding of root to what root:shop exports, with the schema."""
    version = {"name": "v1", "served": True, "storage": True, "schema": schema_of("size")}
    names = {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"}
    spec = {"group": "z.io", "scope": "Namespaced", "names": names, "versions": [version]}
    schema = api.manifest("apis.kcp.io/v1alpha1 APIResourceSchema", "v1.gadgets.z.io", cluster=api.SHOP, spec=spec)
    resource = {"group": "z.io", "resource": "gadgets", "schema": {"name": "v1.gadgets.z.io", "identityHash": "id"}}
    status = {"apiExportClusterName": api.SHOP, "boundResources": [resource], "phase": "Bound"}
    return [schema, api.manifest("apis.kcp.io/v1alpha1 APIBinding", "gadgets", spec={}, status=status)]


async def published(api: Any, world: str = "") -> dict[str, Any]:
    """The fields of Gadget's spec as each document has them; None where a document lacks the kind."""
    found: dict[str, Any] = {}
    apis = (await api.get(f"{world}/apis", accept=AGGREGATED)).json["items"]
    found["aggregated"] = "z.io" in [group["metadata"]["name"] for group in apis]
    legacy = (await api.get(f"{world}/apis", accept="application/json")).json["groups"]
    found["legacy"] = "z.io" in [group["name"] for group in legacy]
    found["group"] = (await api.get(f"{world}/apis/z.io/v1")).status == 200
    v2 = (await api.get(f"{world}/openapi/v2")).json["definitions"].get("io.z.v1.Gadget")
    found["v2"] = list(v2["properties"]["spec"]["properties"]) if v2 else None
    wire = (await api.get(f"{world}/openapi/v2", accept=PROTOBUF)).body
    found["wire"] = b"io.z.v1.Gadget" in wire
    root = (await api.get(f"{world}/openapi/v3")).json["paths"].get("apis/z.io/v1")
    found["v3"] = None
    if root:
        v3 = (await api.get(f"{world}{root['serverRelativeURL']}")).json["components"]["schemas"]["io.z.v1.Gadget"]
        found["v3"] = list(v3["properties"]["spec"]["properties"])
    return found


def everywhere(field: str) -> dict[str, Any]:
    return {"aggregated": True, "legacy": True, "group": True, "v2": [field], "wire": True, "v3": [field]}


NOWHERE = {"aggregated": False, "legacy": False, "group": False, "v2": None, "wire": False, "v3": None}


@pytest.fixture
def steps(api: Any, run: Any) -> Iterator[Any]:
    """Each step changes something and gives the seconds until all documents were right, and what they said."""
    run(published(api))  # what all share is made

    def step(change: Any) -> tuple[float, dict[str, Any]]:
        change()
        begin = time.perf_counter()
        found = run(published(api))
        return time.perf_counter() - begin, found

    yield step


def test_a_definition_is_published_changed_and_taken_back_at_once(api: Any, steps: Any, run: Any) -> None:
    taken = []
    for field in ("size", "weight", "depth"):
        seconds, found = steps(lambda field=field: api.put(crd(api, field)))
        assert found == everywhere(field)
        taken.append(seconds)
    assert run(published(api, "/clusters/root:shop")) == NOWHERE
    _, found = steps(lambda: api.delete(crd(api)))
    assert found == NOWHERE
    assert min(taken) < SOON


def test_a_binding_is_published_and_taken_back_at_once(api: Any, steps: Any) -> None:
    schema, bound = binding(api)
    taken = []
    for _ in range(3):
        seconds, found = steps(lambda: api.put(schema, bound))
        assert found == everywhere("size")
        taken.append(seconds)
        seconds, found = steps(lambda: api.delete(bound))
        assert found == NOWHERE
        taken.append(seconds)
    assert min(taken) < SOON


def test_v2_is_json_or_protobuf_and_comes_once(api: Any, run: Any) -> None:
    plain = run(api.get("/openapi/v2"))
    assert plain.headers["content-type"] == "application/json"
    assert plain.json["swagger"] == "2.0"
    assert run(api.get("/openapi/v2", if_none_match=plain.headers["etag"])).status == 304
    wire = run(api.get("/openapi/v2", accept=PROTOBUF))
    assert wire.headers["content-type"] == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    assert wire.headers["etag"] != plain.headers["etag"]
    assert run(api.get("/openapi/v2", accept=PROTOBUF, if_none_match=wire.headers["etag"])).status == 304
    assert run(api.get("/openapi/v2", if_none_match='"other"')).status == 200


def test_the_tag_changes_with_the_kinds_alone(api: Any, run: Any) -> None:
    def tag(world: str) -> str:
        return str(run(api.get(f"{world}/openapi/v2")).headers["etag"])

    api.put_workspace("root:other", "othercluster0000", directory="workspaces/root/other")
    root, before = tag("/clusters/root"), tag("/clusters/root:shop")
    assert before == tag("/clusters/root:other")
    api.put(api.manifest("v1 ConfigMap", "z", "default"))
    assert root == tag("/clusters/root")
    api.put(crd(api))
    assert root != tag("/clusters/root")
    assert before == tag("/clusters/root:shop")


def test_targets_have_their_own_document(api: Any, run: Any) -> None:
    assert "io.k8s.api.apps.v1.Deployment" in run(api.get(f"{api.EDGE}/openapi/v2")).json["definitions"]
