"""What a request asks for, as its path and method say it: the verb, what the authorizer is asked, whether it waits.

Called by kube before anything is looked up. Nothing here knows whether what is asked for is there.
"""

from __future__ import annotations

from apiserver.auth.accounts import TARGET_PREFIX
from apiserver.auth.user import Attributes
from apiserver.endpoints.exchange import Exchange
from apiserver.endpoints.paths import RequestPath, RequestRoute, Scope
from apiserver.endpoints.realms import RealmWorld
from apiserver.model.errors import method_not_allowed
from apiserver.registry import oldgroups
from apiserver.registry.kinds import common_builtins

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}


def verb_of(exchange: Exchange, place: RequestPath) -> str:
    """Kubernetes' verb, or the method in lower case outside resources."""
    method = exchange.method
    if place.route is not RequestRoute.RESOURCE:
        return method.lower()
    if method in ("GET", "HEAD"):
        if place.watch or (exchange.scope["query_string"] and exchange.flag("watch")):
            return "watch"
        return "get" if place.name else "list"
    if place.watch:
        raise method_not_allowed()
    if method == "DELETE":
        return "delete" if place.name else "deletecollection"
    verb = _VERBS.get(method)
    if verb is None:
        raise method_not_allowed()
    return verb


def attributes(place: RequestPath, verb: str) -> Attributes:
    """What the authorizer is asked. A namespace counts as being inside itself, as in Kubernetes."""
    if place.route is not RequestRoute.RESOURCE:
        return Attributes(verb, path=place.rest)
    namespace = place.namespace
    if place.resource == "namespaces" and not place.group:
        namespace = place.name
    return Attributes(verb, place.group, place.version, place.resource, place.subresource, namespace, place.name)


def renamed(world: RealmWorld, place: RequestPath) -> RequestPath:
    """Under the name that its group has now: what is asked for is the same, and so are the rights to it."""
    if place.group not in oldgroups.NEWER or place.route is not RequestRoute.RESOURCE or world.view is not None:
        return place
    # Nothing is looked for in all workspaces before it is known who asks.
    kinds = world.kinds() if world.cluster is not None else common_builtins()
    return place._replace(group=oldgroups.newer(place.group, kinds) or place.group)


def waits(exchange: Exchange, place: RequestPath) -> bool:
    """Whether it is a watch, which may wait for hours."""
    if place.route is not RequestRoute.RESOURCE or exchange.method != "GET":
        return False
    return place.watch or (bool(exchange.scope["query_string"]) and exchange.flag("watch"))


def at_home(path: str, place: RequestPath, home: str) -> RequestPath:
    """A ServiceAccount that names no world means its own: programs in a Pod know the server's address alone."""
    if not home or path.startswith(("/clusters/", "/targets/", "/services/", "/commits/")):
        return place
    if home.startswith(TARGET_PREFIX):
        return place._replace(scope=Scope.TARGET, world=home.removeprefix(TARGET_PREFIX))
    return place._replace(world=home)
