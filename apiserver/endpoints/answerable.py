"""Whether a world answers by now: one that is complete, and not marked inactive.

Called by kube behind authorization, so that nobody else is told why not.
"""

from __future__ import annotations

from apiserver.endpoints.exchange import Exchange
from apiserver.endpoints.paths import RequestPath, RequestRoute, Scope
from apiserver.endpoints.realms import RealmWorld, fleet, loading, unserved
from apiserver.model.errors import StatusError
from apiserver.model.storagenames import LOGICAL_CLUSTERS

LONGEST_WARNING = 2000
"""Characters: clients limit headers."""
_DOCUMENTS = (RequestRoute.OPENAPI_V2, RequestRoute.OPENAPI_V3, RequestRoute.OPENAPI_DOCUMENT, RequestRoute.HEALTH)


def require_answerable(exchange: Exchange, world: RealmWorld, place: RequestPath) -> None:
    """503 until what would be read is complete, with all errors: whoever comes here may read them. The version is
    the server's, and some clients wait for it."""
    if world.unmounted is not None:
        raise world.unmounted
    if world.inactive and not _answers_inactive(place):
        raise StatusError(403, "Forbidden", "logical cluster is marked inactive")
    if place.route is RequestRoute.SERVER_VERSION:
        return
    if world.view is not None:
        if not fleet(world.realm).loaded or (world.record is not None and not world.record.served):
            raise loading(fleet(world.realm))  # what is wrong with a consumer is its own
        return
    if world.record is not None:
        error = unserved(world.record)
        if error is not None and world.record.errors and place.route is not RequestRoute.RESOURCE:
            # kubectl would ask ten times for discovery, silently; and of an error there it shows the warning only.
            error.retry_after = None
            exchange.warnings.append(error.message[:LONGEST_WARNING])
        if error is not None:
            raise error
    elif world.scope is Scope.EVERY and not fleet(world.realm).loaded:
        raise loading(fleet(world.realm))


def _answers_inactive(place: RequestPath) -> bool:
    """Whether a workspace that is marked inactive answers all the same: so that the mark can be taken away. Health is
    the server's."""
    if place.route is RequestRoute.RESOURCE:
        return f"{place.resource}.{place.group}" == LOGICAL_CLUSTERS
    return place.route in _DOCUMENTS
