"""OpenAPI v3 as kubectl reads it: a root that names a document for each group and version, each with its hash.

A document asked for with its right hash never changes, so clients keep it for a year; with a wrong one they are sent to
the right one. The root's URLs have no world in front: clients put it there again. v2 is not served.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import orjson

from apiserver.endpoints.errors import NoSuchPath
from apiserver.endpoints.exchange import JSON, Exchange, Headers
from apiserver.endpoints.paths import Place, Route
from apiserver.endpoints.realms import World
from apiserver.model.errors import StatusError
from apiserver.registry import openapi
from apiserver.registry.kindtable import KindTable

_FOREVER: Headers = [(b"cache-control", b"public, immutable, max-age=31536000"), (b"vary", b"Accept")]
_KEPT = 256


class Document(NamedTuple):
    body: bytes
    digest: str


_documents: dict[tuple[str, str], Document] = {}


async def serve(exchange: Exchange, world: World, place: Place) -> None:
    """Raises NoSuchPath for a group or version that is not served, StatusError 501 for v2."""
    kinds = world.kinds()
    if place.route is Route.OPENAPI_V2:
        raise StatusError(501, "NotImplemented", "OpenAPI v2 is not supported: use /openapi/v3")
    if place.route is Route.OPENAPI_V3:
        await _root(exchange, kinds)
        return
    document = _document(kinds, place.name)
    asked = exchange.parameter("hash")
    etag = f'"{document.digest}"'
    if asked and asked != document.digest:
        where = f"{exchange.path}?hash={document.digest}"
        await exchange.answer(301, b"", JSON, [(b"location", where.encode())])
        return
    extra: Headers = [(b"etag", etag.encode()), *(_FOREVER if asked else [(b"cache-control", b"no-cache, private")])]
    if etag in exchange.header(b"if-none-match"):
        await exchange.answer(304, b"", JSON, extra)
        return
    await exchange.answer(200, document.body, JSON, extra)


def _keys(kinds: KindTable) -> dict[str, tuple[str, str]]:
    """`api/v1`, `apis/apps/v1`, … with group and version."""
    return {
        (f"apis/{group}/{version}" if group else f"api/{version}"): (group, version)
        for group, versions in kinds.groups().items()
        for version in versions
    }


async def _root(exchange: Exchange, kinds: KindTable) -> None:
    paths = {
        key: {"serverRelativeURL": f"/openapi/v3/{key}?hash={_digest(kinds, *gv)}"} for key, gv in _keys(kinds).items()
    }
    await exchange.answer(200, orjson.dumps({"paths": paths}), JSON, [(b"vary", b"Accept")])


def _digest(kinds: KindTable, group: str, version: str) -> str:
    """Of a document's content, known before the document is made: making all of them takes seconds."""
    parts = [k.digest for k in kinds.all() if (k.group, k.version) == (group, version)]
    return hashlib.sha512("\n".join((group, version, *parts)).encode()).hexdigest().upper()


def _document(kinds: KindTable, key: str) -> Document:
    gv = _keys(kinds).get(key)
    if gv is None:
        raise NoSuchPath
    digest = _digest(kinds, *gv)
    found = _documents.get((key, digest))
    if found is None:
        if len(_documents) >= _KEPT:
            _documents.clear()
        body = bytes(memoryview(orjson.dumps(openapi.document(kinds, *gv))))
        found = _documents[key, digest] = Document(body, digest)
    return found
