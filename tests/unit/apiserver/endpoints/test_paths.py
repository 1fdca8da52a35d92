import pytest

from apiserver.endpoints.paths import RequestRoute, Scope, parse


@pytest.mark.parametrize(
    ("path", "scope", "world", "rest"),
    [
        ("/api/v1/pods", Scope.WORKSPACE, "root", "/api/v1/pods"),
        ("/", Scope.WORKSPACE, "root", "/"),
        ("/clusters/root:shop/api/v1/pods", Scope.WORKSPACE, "root:shop", "/api/v1/pods"),
        ("/clusters/root:shop", Scope.WORKSPACE, "root:shop", "/"),
        ("/clusters/root:shop/", Scope.WORKSPACE, "root:shop", "/"),
        ("/clusters/*/api/v1/pods", Scope.EVERY, "*", "/api/v1/pods"),
        ("/targets/root:infra:edge/version", Scope.TARGET, "root:infra:edge", "/version"),
        ("/clusters/a/clusters/b", Scope.WORKSPACE, "a", "/clusters/b"),
    ],
)
def test_worlds(path: str, scope: Scope, world: str, rest: str) -> None:
    found = parse(path)
    assert (found.scope, found.world, found.rest) == (scope, world, rest)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/api/v1/configmaps", ("", "v1", "configmaps", "", "", "")),
        ("/api/v1/namespaces", ("", "v1", "namespaces", "", "", "")),
        ("/api/v1/namespaces/", ("", "v1", "namespaces", "", "", "")),
        ("/api/v1/namespaces/x", ("", "v1", "namespaces", "", "x", "")),
        ("/api/v1/namespaces/x/status", ("", "v1", "namespaces", "", "x", "status")),
        ("/api/v1/namespaces/x/finalize", ("", "v1", "namespaces", "", "x", "finalize")),
        ("/api/v1/namespaces/x/configmaps", ("", "v1", "configmaps", "x", "", "")),
        ("/api/v1/namespaces/x/configmaps/y", ("", "v1", "configmaps", "x", "y", "")),
        ("/apis/apps/v1/namespaces/x/deployments/y/scale", ("apps", "v1", "deployments", "x", "y", "scale")),
        ("/apis/a.io/v1/widgets/y/status", ("a.io", "v1", "widgets", "", "y", "status")),
        ("/apis/a.io/v1/widgets:0123abcd", ("a.io", "v1", "widgets:0123abcd", "", "", "")),
    ],
)
def test_resources(path: str, expected: tuple[str, ...]) -> None:
    found = parse(path)
    assert found.route is RequestRoute.RESOURCE
    assert found[4:11] == (*expected, False)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/api/v1/watch/configmaps", ("", "v1", "configmaps", "", "", "", True)),
        ("/api/v1/watch/namespaces/x/configmaps/y", ("", "v1", "configmaps", "x", "y", "", True)),
        ("/apis/a.io/v1/watch/namespaces/x/widgets", ("a.io", "v1", "widgets", "x", "", "", True)),
        ("/apis/a.io/v1/watch", ("a.io", "v1", "watch", "", "", "", False)),
        ("/apis/a.io/v1/watch/watch/x", ("a.io", "v1", "watch", "", "x", "", True)),
    ],
)
def test_the_old_form_of_a_watch(path: str, expected: tuple[str, ...]) -> None:
    assert parse(path)[4:11] == expected


@pytest.mark.parametrize(
    ("path", "route", "name"),
    [
        ("/", RequestRoute.INDEX, ""),
        ("/api", RequestRoute.API, ""),
        ("/api/", RequestRoute.API, ""),
        ("/apis/", RequestRoute.APIS, ""),
        ("/apis/apps", RequestRoute.GROUP, ""),
        ("/apis/apps/v1/", RequestRoute.VERSION, ""),
        ("/api/v1", RequestRoute.VERSION, ""),
        ("/version/", RequestRoute.SERVER_VERSION, ""),
        ("/openapi/v2", RequestRoute.OPENAPI_V2, ""),
        ("/openapi/v3", RequestRoute.OPENAPI_V3, ""),
        ("/openapi/v3/apis/apps/v1", RequestRoute.OPENAPI_DOCUMENT, "apis/apps/v1"),
        ("/healthz", RequestRoute.HEALTH, ""),
        ("/readyz/ping", RequestRoute.HEALTH, "ping"),
        ("/metrics", RequestRoute.METRICS, ""),
        ("/nope", RequestRoute.NOWHERE, ""),
        ("/readyz/poststarthook/a/b", RequestRoute.HEALTH, "poststarthook/a/b"),
        ("/api/v1/namespaces//pods", RequestRoute.NOWHERE, ""),
        ("/clusters/a/clusters/b/api", RequestRoute.NESTED, ""),
        ("/clusters/*/clusters/b/api", RequestRoute.NESTED, ""),
        ("/targets/a:b/clusters/b/api", RequestRoute.NOWHERE, ""),
    ],
)
def test_routes(path: str, route: RequestRoute, name: str) -> None:
    found = parse(path)
    assert (found.route, found.name) == (route, name)


def test_what_a_program_sees_is_a_world_like_any_other() -> None:
    found = parse("/services/initializingworkspaces/1abc:gold/clusters/2def/api/v1/configmaps")
    assert (found.view, found.program) == ("initializingworkspaces", "1abc:gold")
    assert (found.scope, found.world, found.resource) == (Scope.WORKSPACE, "2def", "configmaps")
    found = parse("/services/terminatingworkspaces/1abc:gold/clusters/*/apis/core.kcp.io/v1alpha1/logicalclusters")
    assert (found.view, found.scope, found.world) == ("terminatingworkspaces", Scope.EVERY, "*")
    for path in ("", "/", "/1abc:gold", "/1abc:gold/api", "//clusters/x/api", "/a/clusters/x/clusters/y/api"):
        assert parse(f"/services/initializingworkspaces{path}").route is RequestRoute.NESTED, path
