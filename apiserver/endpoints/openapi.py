"""OpenAPI of a world: v3 as a root that names a document for each group and version, and v2 as one document.

A v3 document asked for with its right hash never changes, so clients keep it for a year; with a wrong one they are sent
to the right one. The root's URLs have no world in front: clients put it there again. v2 is JSON or, for Go clients,
protobuf; its tag is known without the document, so that asking again costs nothing.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import orjson

from apiserver.endpoints.errors import NoSuchPath
from apiserver.endpoints.exchange import JSON, Exchange, Headers
from apiserver.endpoints.negotiation import choices
from apiserver.endpoints.paths import RequestPath, RequestRoute
from apiserver.endpoints.realms import RealmWorld
from apiserver.registry import oldgroups, openapi, openapi2
from apiserver.registry.kindtable import KindTable

_FOREVER: Headers = [(b"cache-control", b"public, immutable, max-age=31536000"), (b"vary", b"Accept")]
_KEPT = 256
_PROTOBUF = b"application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_ASK_PROTOBUF = frozenset({_PROTOBUF.decode(), "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"})


class OpenAPIDocument(NamedTuple):
    body: bytes
    digest: str


_documents: dict[tuple[str, str], OpenAPIDocument] = {}


async def serve(exchange: Exchange, world: RealmWorld, place: RequestPath) -> None:
    """Raises NoSuchPath for a group or version that is not served."""
    kinds = world.kinds()
    if place.route is RequestRoute.OPENAPI_V2:
        await _v2(exchange, kinds)
        return
    older = oldgroups.table(kinds)
    if place.route is RequestRoute.OPENAPI_V3:
        await _root(exchange, kinds, older)
        return
    document = _document(older if place.name in _keys(older) else kinds, place.name)
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


async def _v2(exchange: Exchange, kinds: KindTable) -> None:
    published = openapi2.published(kinds)
    wants_protobuf = any(media_type in _ASK_PROTOBUF for media_type, _ in choices(exchange.header(b"accept")))
    form = _PROTOBUF if wants_protobuf else JSON
    etag = f'"{published.etag}{"P" if wants_protobuf else ""}"'
    extra: Headers = [
        (b"etag", etag.encode()),
        (b"cache-control", b"no-cache, private"),
        (b"vary", b"Accept"),
    ]
    if etag in exchange.header(b"if-none-match"):
        await exchange.answer(304, b"", form, extra)
        return
    await exchange.answer(200, published.wire() if wants_protobuf else published.json(), form, extra)


def _keys(kinds: KindTable) -> dict[str, tuple[str, str]]:
    """`api/v1`, `apis/apps/v1`, … with group and version."""
    return {
        (f"apis/{group}/{version}" if group else f"api/{version}"): (group, version)
        for group, versions in kinds.groups().items()
        for version in versions
    }


async def _root(exchange: Exchange, *tables: KindTable) -> None:
    paths = {
        key: {"serverRelativeURL": f"/openapi/v3/{key}?hash={_digest(kinds, *gv)}"}
        for kinds in tables
        for key, gv in _keys(kinds).items()
    }
    await exchange.answer(200, orjson.dumps({"paths": paths}), JSON, [(b"vary", b"Accept")])


def _digest(kinds: KindTable, group: str, version: str) -> str:
    """Of a document's content, known before the document is made: making all of them takes seconds."""
    parts = [k.digest for k in kinds.all() if (k.group, k.version) == (group, version)]
    return hashlib.sha512("\n".join((group, version, *parts)).encode()).hexdigest().upper()


def _document(kinds: KindTable, key: str) -> OpenAPIDocument:
    gv = _keys(kinds).get(key)
    if gv is None:
        raise NoSuchPath
    digest = _digest(kinds, *gv)
    found = _documents.get((key, digest))
    if found is None:
        if len(_documents) >= _KEPT:
            _documents.clear()
        body = bytes(memoryview(orjson.dumps(openapi.document(kinds, *gv))))
        found = _documents[key, digest] = OpenAPIDocument(body, digest)
    return found
