"""Request paths, taken apart: which world is meant, and what in it. Pure; called once per request by kube.py.

    /clusters/root:shop/api/v1/namespaces/web/configmaps/a   → workspace root:shop; GET v1 configmaps a in web
    /clusters/*/apis/apps/v1/deployments                     → all workspaces
    /targets/root:infra:edge/version                         → the embedded sync target edge of root:infra
    /services/apiexport/root:db/postgres/clusters/*/apis     → what the provider of that export sees of its consumers
    /services/apiresourceschema/root:shop/apis               → the schemas that root:shop has bound
    /api/v1/namespaces                                       → the root workspace
    /api/v1/watch/namespaces/web/configmaps                  → as with ?watch=1
    /services/initializingworkspaces/1a:gold/clusters/*/apis → as seen by the initializer 1a:gold
    /commits/v1.2/clusters/root:shop/apis                    → root:shop as the commit v1.2 has it

Trailing slashes mean nothing. Whether a world or a resource exists is for others to say.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from apiserver.model.paths import ROOT, WILDCARD
from apiserver.registry.lifecycles import LIFECYCLES


class Scope(Enum):
    """What kind of world a path names."""

    WORKSPACE = "workspace"
    EVERY = "every workspace"
    TARGET = "target"
    PROVIDER = "what a provider sees of its consumers"
    SCHEMAS = "the schemas that a workspace has bound"


class RequestRoute(Enum):
    """What is asked for inside a world."""

    RESOURCE = "resource"
    INDEX = "index"
    API = "api"
    APIS = "apis"
    GROUP = "group"
    VERSION = "version"
    OPENAPI_V2 = "openapi v2"
    OPENAPI_V3 = "openapi v3"
    OPENAPI_DOCUMENT = "openapi document"
    SERVER_VERSION = "server version"
    HEALTH = "health"
    METRICS = "metrics"
    STATUS = "status"
    RECONCILE = "reconcile"
    ISSUER = "issuer"
    JWKS = "keys of the issuer"
    NESTED = "a workspace inside a workspace's URL"
    NOWHERE = "nowhere"


class RequestPath(NamedTuple):
    """A request's path, read.

    `world`: a workspace path or logical cluster name, `*`, `<workspace path>:<target name>` or
    `<workspace>/<export>/<consumer>`, or `<consumer>/<provider>`. `rest`: the path inside
    the world, without a trailing slash, as RBAC's nonResourceURLs name it. The remaining fields are "" where the route
    has none; `name` also holds the health check asked for and the OpenAPI document's key. `watch`: the path itself says
    so (`/api/v1/watch/configmaps`, the old form). `view`: through which service the world is seen, "" if it is by
    itself; `program`: as whom. `at`: the revision (an id, a branch, a tag) that it is read at, "" for what is served.
    """

    scope: Scope
    world: str
    rest: str
    route: RequestRoute
    group: str = ""
    version: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    watch: bool = False
    view: str = ""
    program: str = ""
    at: str = ""


_COMMITS = "/commits/"
_PROVIDER = "/services/apiexport/"
_SCHEMAS = "/services/apiresourceschema/"
VIEWS = frozenset(each.view for each in LIFECYCLES)
HEALTH = frozenset({"healthz", "livez", "readyz"})
JWKS = "/openid/v1/jwks"
_FIXED = {
    "": RequestRoute.INDEX,
    "/api": RequestRoute.API,
    "/apis": RequestRoute.APIS,
    "/version": RequestRoute.SERVER_VERSION,
    "/openapi/v2": RequestRoute.OPENAPI_V2,
    "/openapi/v3": RequestRoute.OPENAPI_V3,
    "/metrics": RequestRoute.METRICS,
    "/status": RequestRoute.STATUS,
    "/reconcile": RequestRoute.RECONCILE,
    "/.well-known/openid-configuration": RequestRoute.ISSUER,
    JWKS: RequestRoute.JWKS,
}


def parse(path: str) -> RequestPath:
    """Of a decoded request path. Remembered, since clients ask for the same things again and again; but not a long one,
    of which whoever connects could fill the memory with."""
    return _remembered(path) if len(path) <= _SHORT else _parse(path)


def _parse(path: str) -> RequestPath:
    if path.startswith(_COMMITS):
        return _at_commit(path)
    match path.split("/", 5):
        case ["", "services", view, program, "clusters", rest] if view in VIEWS and program:
            return _inside(f"/clusters/{rest}")._replace(view=view, program=program)
        case ["", "services", view, *_] if view in VIEWS:
            return RequestPath(Scope.WORKSPACE, ROOT, path, RequestRoute.NESTED)
    return _inside(path)


def _at_commit(path: str) -> RequestPath:
    """One workspace, and nothing else; a revision with `/clusters/` in its name is asked for by its id."""
    rev, found, rest = path[len(_COMMITS) :].partition("/clusters/")
    place = _inside(f"/clusters/{rest}") if found and rev else None
    if place is None or place.scope is not Scope.WORKSPACE or not place.world:
        return RequestPath(Scope.WORKSPACE, ROOT, path, RequestRoute.NOWHERE)
    return place._replace(at=rev)


def _inside(path: str) -> RequestPath:
    scope, world, rest = _world(path)
    rest = rest.rstrip("/")
    if rest.startswith("/clusters/") and scope is not Scope.TARGET:
        return RequestPath(scope, world, rest, RequestRoute.NESTED)
    fixed = _FIXED.get(rest)
    if fixed is not None:
        return RequestPath(scope, world, rest or "/", fixed)
    parts = rest.split("/")[1:]
    match parts:
        case ["api", version, *below]:
            return _resource(RequestPath(scope, world, rest, RequestRoute.VERSION, "", version), below)
        case ["apis", group]:
            return RequestPath(scope, world, rest, RequestRoute.GROUP, group)
        case ["apis", group, version, *below]:
            return _resource(RequestPath(scope, world, rest, RequestRoute.VERSION, group, version), below)
        case ["openapi", "v3", *key]:
            return RequestPath(scope, world, rest, RequestRoute.OPENAPI_DOCUMENT, name="/".join(key))
        case [check, *below] if check in HEALTH:
            return RequestPath(scope, world, rest, RequestRoute.HEALTH, resource=check, name="/".join(below))
    return RequestPath(scope, world, rest, RequestRoute.NOWHERE)


_SHORT = 512
_remembered = lru_cache(4096)(_parse)


def _world(path: str) -> tuple[Scope, str, str]:
    """Scope, world's name and what follows."""
    if path.startswith("/clusters/"):
        world, slash, rest = path[10:].partition("/")
        return (Scope.EVERY if world == WILDCARD else Scope.WORKSPACE), world, slash + rest
    if path.startswith("/targets/"):
        world, slash, rest = path[9:].partition("/")
        return Scope.TARGET, world, slash + rest
    if path.startswith(_SCHEMAS):
        consumer, slash, rest = path[len(_SCHEMAS) :].partition("/")
        provider = WILDCARD
        if rest.startswith("clusters/"):
            provider, slash, rest = rest[9:].partition("/")
        if consumer and provider:
            return Scope.SCHEMAS, f"{consumer}/{provider}", slash + rest
    if path.startswith(_PROVIDER):
        workspace, _, below = path[len(_PROVIDER) :].partition("/")
        export, _, below = below.partition("/clusters/")
        consumer, slash, rest = below.partition("/")
        if workspace and export and consumer and "/" not in export:
            return Scope.PROVIDER, f"{workspace}/{export}/{consumer}", slash + rest
    return Scope.WORKSPACE, ROOT, path


def _resource(at: RequestPath, parts: list[str]) -> RequestPath:
    """What follows `/api/v1` or `/apis/<group>/<version>`."""
    namespace = ""
    if not parts:
        return at
    if "" in parts:
        return at._replace(route=RequestRoute.NOWHERE)
    if parts[0] == "watch" and len(parts) > 1 and not at.watch:
        return _resource(at._replace(watch=True), parts[1:])
    if parts[0] == "namespaces" and len(parts) > 2 and (len(parts) > 3 or parts[2] not in {"status", "finalize"}):
        namespace, parts = parts[1], parts[2:]
    name = parts[1] if len(parts) > 1 else ""
    below = parts[2:3] if parts[2:3] == ["proxy"] else parts[2:]  # what follows a proxy is for whom it leads to
    return at._replace(
        route=RequestRoute.RESOURCE,
        resource=parts[0],
        namespace=namespace,
        name=name,
        subresource="/".join(below),
    )
