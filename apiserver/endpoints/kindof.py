"""Which kind a resource of a path is in a world, and who answers what is read of it.

Called by kube once it is known that the caller may ask.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from apiserver.endpoints import nodeless, reads
from apiserver.endpoints.asking import Asking
from apiserver.endpoints.errors import NoSuchPath
from apiserver.endpoints.paths import RequestPath
from apiserver.endpoints.realms import RealmWorld
from apiserver.endpoints.scale import get_scale
from apiserver.endpoints.watch import watch
from apiserver.model.errors import method_not_allowed, no_such_resource
from apiserver.registry.served import ServedKind

_READ_SUBRESOURCES = frozenset({"", "approval", "ephemeralcontainers", "resize", "status"})


def kind_of(world: RealmWorld, place: RequestPath) -> ServedKind:
    """Raises NoSuchPath for an unknown group or version, StatusError 404 for an unknown resource in a known one."""
    if world.view is not None:
        found = world.view.kind(place.group, place.version, place.resource)
        if found is None and place.version not in world.kinds().groups().get(place.group, ()):
            raise NoSuchPath
        return _fitting(found, place, world.cluster)
    if world.cluster is None:
        found = world.realm.everywhere.kind(place.group, place.version, place.resource)
        if found is None:
            raise no_such_resource()
        return found
    kinds = world.realm.catalog.kinds(world.cluster)
    found = kinds.by_resource(place.group, place.version, place.resource)
    if found is None and (place.group, place.resource) == ("", "pods") and world.path:
        raise nodeless.no_pods(world.path)
    if found is None:
        if place.version not in kinds.groups().get(place.group, ()):
            raise NoSuchPath
        raise no_such_resource()
    return _fitting(found, place, world.cluster)


def _fitting(found: ServedKind | None, place: RequestPath, cluster: str | None) -> ServedKind:
    """A kind that a path asks for as it is: in a namespace or not."""
    if found is None or (bool(place.namespace) and not found.namespaced):
        raise no_such_resource()
    if found.namespaced and not place.namespace and place.name and cluster is not None:
        raise no_such_resource()
    return found


def reader_of(asking: Asking, verb: str) -> Callable[[Asking], Awaitable[None]]:
    """Raises StatusError 404 or 405."""
    kind, subresource = asking.kind, asking.place.subresource
    if subresource and subresource not in kind.subresources:
        raise no_such_resource()
    if not kind.storage or verb not in kind.verbs:
        raise method_not_allowed()
    if verb == "watch":
        return watch
    if verb == "list":
        return reads.list_
    if subresource == "scale":
        return get_scale
    if subresource not in _READ_SUBRESOURCES:
        raise method_not_allowed()
    return reads.get
