from typing import Any

AGGREGATED = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)
TYPE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def test_aggregated(api: Any, run: Any) -> None:
    core = run(api.get("/api?timeout=32s", accept=AGGREGATED))
    assert core.headers["content-type"] == TYPE
    [group] = core.json["items"]
    resources = {r["resource"]: r for r in group["versions"][0]["resources"]}
    assert resources["configmaps"]["scope"] == "Namespaced"
    groups = [g["metadata"]["name"] for g in run(api.get("/apis", accept=AGGREGATED)).json["items"]]
    assert "tenancy.kcp.io" in groups
    again = run(api.get("/api", accept=AGGREGATED, if_none_match=core.headers["etag"]))
    assert (again.status, again.body, "content-length" in again.headers) == (304, b"", False)


def test_legacy_with_and_without_a_trailing_slash(api: Any, run: Any) -> None:
    for slash in ("", "/"):
        assert run(api.get(f"/api{slash}")).json["versions"] == ["v1"]
        groups = [g["name"] for g in run(api.get(f"/apis{slash}", accept="application/json")).json["groups"]]
        assert "rbac.authorization.k8s.io" in groups
        assert "" not in groups
        group = run(api.get(f"/apis/rbac.authorization.k8s.io{slash}")).json
        assert group["preferredVersion"]["version"] == "v1"
        listed = run(api.get(f"/api/v1{slash}")).json
        assert (listed["kind"], listed["groupVersion"]) == ("APIResourceList", "v1")
        assert "configmaps" in [r["name"] for r in listed["resources"]]
    assert run(api.get("/apis/nope.io/v1")).status == 404
    assert run(api.get("/apis/rbac.authorization.k8s.io/v9")).status == 404


def test_targets_serve_workloads(api: Any, run: Any) -> None:
    assert run(api.get(f"{api.EDGE}/apis/apps/v1")).status == 200
    assert run(api.get("/apis/apps/v1")).status == 404


def test_the_index(api: Any, run: Any) -> None:
    paths = run(api.get("/clusters/root")).json["paths"]
    assert {"/api", "/api/v1", "/apis/rbac.authorization.k8s.io/v1", "/healthz", "/version"} <= set(paths)


def test_openapi(api: Any, run: Any) -> None:
    paths = run(api.get("/clusters/root:shop/openapi/v3")).json["paths"]
    url = paths["api/v1"]["serverRelativeURL"]
    assert url.startswith("/openapi/v3/api/v1?hash=")
    document = run(api.get(f"/clusters/root:shop{url}"))
    assert "immutable" in document.headers["cache-control"]
    patch = document.json["paths"]["/api/v1/namespaces/{namespace}/configmaps/{name}"]["patch"]
    assert "fieldValidation" in [p["name"] for p in patch["parameters"]]
    wrong = run(api.get("/clusters/root:shop/openapi/v3/api/v1?hash=WRONG"))
    assert (wrong.status, wrong.headers["location"]) == (301, f"/clusters/root:shop{url}")
    assert run(api.get("/openapi/v3/apis/nope/v1")).status == 404
    same = run(api.get(f"/clusters/root:shop{url}", if_none_match=document.headers["etag"]))
    assert same.status == 304
