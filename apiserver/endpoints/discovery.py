"""Discovery: what a world serves. Aggregated v2 and legacy, both needed: kubectl and Helm read the one, kopf, kr8s and
the Python client the other.

The documents come from the registry; this negotiates, and answers 304 to a client that has the document already. A
document is made once per set of kinds and shared by all workspaces that have the same.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from apiserver.endpoints.errors import NoSuchPath
from apiserver.endpoints.exchange import JSON, Exchange, Headers
from apiserver.endpoints.negotiation import choices
from apiserver.endpoints.paths import HEALTH, RequestPath, RequestRoute
from apiserver.endpoints.realms import RealmWorld
from apiserver.registry import discovery
from apiserver.registry.kindtable import KindTable

_AGGREGATED = b"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class DiscoveryDocument(NamedTuple):
    body: bytes
    etag: str


async def serve(exchange: Exchange, world: RealmWorld, place: RequestPath) -> None:
    """/, /api, /apis and below. Raises NoSuchPath for groups and versions that are not served."""
    kinds = world.kinds()
    match place.route:
        case RequestRoute.INDEX:
            await exchange.answer(200, orjson.dumps({"paths": _paths(kinds)}))
        case RequestRoute.API if _wants_aggregated(exchange):
            await _aggregated(exchange, kinds, True)
        case RequestRoute.APIS if _wants_aggregated(exchange):
            await _aggregated(exchange, kinds, False)
        case _:
            await serve_plain(exchange, kinds, place)


async def serve_plain(exchange: Exchange, kinds: KindTable, place: RequestPath) -> None:
    """The older form alone, whatever the client names first. Raises NoSuchPath."""
    match place.route:
        case RequestRoute.API:
            await _plain(exchange, discovery.api_versions())
        case RequestRoute.APIS:
            await _plain(exchange, discovery.api_group_list(kinds))
        case RequestRoute.GROUP:
            await _plain(exchange, discovery.api_group(kinds, place.group))
        case _:
            await _plain(exchange, discovery.api_resource_list(kinds, place.group, place.version))


def _wants_aggregated(exchange: Exchange) -> bool:
    """Whether the client names the aggregated form before plain JSON."""
    return _aggregated_first(exchange.header(b"accept"))


@lru_cache(256)
def _aggregated_first(accept: str) -> bool:
    for media_type, parameters in choices(accept):
        if media_type != "application/json":
            continue
        shape = parameters.get("as", "")
        if not shape:
            return False
        if (parameters.get("g"), parameters.get("v"), shape) == ("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList"):
            return True
    return False


_documents: dict[tuple[str, bool], DiscoveryDocument] = {}
_KEPT = 512


def _document(kinds: KindTable, core: bool) -> DiscoveryDocument:
    key = (kinds.digest, core)
    found = _documents.get(key)
    if found is None:
        if len(_documents) >= _KEPT:
            _documents.clear()
        body = bytes(memoryview(orjson.dumps(discovery.aggregated(kinds, core=core))))
        found = _documents[key] = DiscoveryDocument(body, f'"{hashlib.sha512(body).hexdigest().upper()}"')
    return found


async def _aggregated(exchange: Exchange, kinds: KindTable, core: bool) -> None:
    document = _document(kinds, core)
    extra: Headers = [
        (b"etag", document.etag.encode()),
        (b"vary", b"Accept"),
        (b"cache-control", b"public"),
    ]
    if document.etag in exchange.header(b"if-none-match"):
        await exchange.answer(304, b"", _AGGREGATED, extra)
        return
    await exchange.answer(200, document.body, _AGGREGATED, extra)


async def _plain(exchange: Exchange, document: dict[str, Any] | None) -> None:
    if document is None:
        raise NoSuchPath
    await exchange.answer(200, orjson.dumps(document), JSON, [(b"vary", b"Accept")])


def _paths(kinds: KindTable) -> list[str]:
    """The index at /."""
    found = {"/api", "/apis", "/version", "/openapi/v2", "/openapi/v3", *(f"/{check}" for check in HEALTH)}
    for group, versions in kinds.groups().items():
        root = f"/apis/{group}" if group else "/api"
        found.update((root, *(f"{root}/{version}" for version in versions)))
    return sorted(found)
