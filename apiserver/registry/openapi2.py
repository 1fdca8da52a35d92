"""The OpenAPI v2 document of a table of kinds: for Argo CD, older kubectl and whoever does not read v3.

One document for all groups, put together from parts: one of the kinds that Kubernetes has and of the definitions that
all share, made once per set of such kinds; and one for every other kind, made once per content. A workspace with kinds
of its own costs those kinds. In protobuf parts are simply joined, since repeated embedded messages merge.

v2 can say less than v3: alternatives (allOf, anyOf, oneOf, not) go; a nullable field and one that preserves unknown
fields keep neither type nor what is in them; a kind that preserves them at its root is an object, no more.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from threading import Lock
from typing import Any, NamedTuple

import orjson

from apiserver.registry import openapi, openapi2_wire
from apiserver.registry.facts import load
from apiserver.registry.kinds import KindTable, ServedKind
from apiserver.registry.schemas import REFERENCE

Document = dict[str, Any]

_DEFINITION = "#/definitions/"
_ALTERNATIVES = ("allOf", "anyOf", "oneOf", "not")
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING = "int-or-string"
_GVK = "x-kubernetes-group-version-kind"
_KEEP = 256


class OpenAPIPart(NamedTuple):
    """Members of `paths` and of `definitions` as JSON without the braces; and the same as protobuf."""

    paths: bytes
    definitions: bytes
    wire: bytes


class Published(NamedTuple):
    """`etag` is known without the rest being made."""

    etag: str
    json: Callable[[], bytes]
    wire: Callable[[], bytes]


def published(kinds: KindTable) -> Published:
    """What `kinds` are in v2."""
    return Published(_etag(kinds), lambda: _json(_parts(kinds)), lambda: _wire(_parts(kinds)))


def _etag(kinds: KindTable) -> str:
    return hashlib.sha512(f"v2 {kinds.digest}".encode()).hexdigest().upper()


def document(kinds: KindTable) -> Document:
    """As data."""
    found: Document = orjson.loads(_json(_parts(kinds)))
    return found


def _info() -> Document:
    return {"title": "Kubernetes", "version": f"v{load.kubernetes()['version']}.0"}


def _json(parts: Sequence[OpenAPIPart]) -> bytes:
    return b'{"swagger":"2.0","info":%b,"paths":{%b},"definitions":{%b}}' % (
        orjson.dumps(_info()),
        b",".join([p.paths for p in parts if p.paths]),
        b",".join([p.definitions for p in parts if p.definitions]),
    )


def _wire(parts: Sequence[OpenAPIPart]) -> bytes:
    return b"".join([openapi2_wire.head(_info()), *(p.wire for p in parts)])


_made: OrderedDict[tuple[str, ...], OpenAPIPart] = OrderedDict()
_lock = Lock()


def _parts(kinds: KindTable) -> list[OpenAPIPart]:
    shared = [k for k in kinds.all() if k.source.definition]
    own = [k for k in kinds.all() if not k.source.definition]
    key = tuple(k.digest for k in shared)
    return [_kept(key, lambda: _shared(shared)), *(_kept((k.digest,), partial(_own, k)) for k in own)]


def _kept(key: tuple[str, ...], make: Callable[[], OpenAPIPart]) -> OpenAPIPart:
    with _lock:
        found = _made.get(key)
        if found is not None:
            _made.move_to_end(key)
            return found
    found = make()
    with _lock:
        _made[key] = found
        if len(_made) > _KEEP:
            _made.popitem(last=False)
    return found


def _shared(kinds: Iterable[ServedKind]) -> OpenAPIPart:
    paths: Document = {}
    schemas: Document = {}
    for kind in kinds:
        own = openapi.of_kind(kind)
        paths |= own.paths
        schemas |= own.schemas
    openapi.add_referred(schemas, openapi.ROOTS)
    return _part(paths, schemas)


def _own(kind: ServedKind) -> OpenAPIPart:
    return _part(*openapi.of_kind(kind))


def _part(paths: Document, schemas: Document) -> OpenAPIPart:
    paths = {path: _item(item) for path, item in sorted(paths.items())}
    definitions = {name: definition(schema) for name, schema in sorted(schemas.items())}
    wire = openapi2_wire.paths(paths) + openapi2_wire.definitions(definitions)
    return OpenAPIPart(_members(paths), _members(definitions), bytes(memoryview(wire)))


def _members(found: Document) -> bytes:
    return orjson.dumps(found)[1:-1]


# -- schemas ----------------------------------------------------------------------------------------------------------


def definition(schema: Document) -> Document:
    """A whole kind or a definition of Kubernetes'."""
    if schema.get(_PRESERVE) and _GVK in schema:
        return {"type": "object", _GVK: schema[_GVK]}
    return _schema(schema)


def _schema(schema: Document) -> Document:
    reference = _reference(schema)
    if reference:
        kept = {k: v for k, v in schema.items() if k in ("description", "default") or k.startswith("x-")}
        return {"$ref": _DEFINITION + reference.removeprefix(REFERENCE), **kept}
    dropped = {*_ALTERNATIVES, "nullable"}
    if schema.get("nullable") or schema.get(_PRESERVE):
        dropped |= {"type", "items", "properties", "required"}
    out = {k: v for k, v in schema.items() if k not in dropped}
    if schema.get("oneOf") and "type" not in schema and not schema.get(_PRESERVE):
        out["type"] = "string"  # Kubernetes' int-or-string and quantities: every client reads a string
    if "properties" in out:
        _properties(out)
    if isinstance(out.get("items"), dict):
        out["items"] = _schema(out["items"])
    if isinstance(out.get("additionalProperties"), dict):
        out["additionalProperties"] = _schema(out["additionalProperties"])
    return out


def _properties(out: Document) -> None:
    """What is nullable cannot be said to be required."""
    nullable = {name for name, each in out["properties"].items() if each.get("nullable")}
    out["properties"] = {name: _schema(each) for name, each in out["properties"].items()}
    required = [name for name in out.get("required", ()) if name not in nullable]
    if required:
        out["required"] = required
    else:
        out.pop("required", None)


def _reference(schema: Document) -> str:
    """The definition that `schema` names, itself or as the only part of allOf."""
    alone: list[Document] = schema.get("allOf") or []
    found: str = schema.get("$ref") or next((part.get("$ref", "") for part in alone if len(alone) == 1), "")
    return found


# -- operations -------------------------------------------------------------------------------------------------------


def _item(item: Document) -> Document:
    out: Document = {method: _operation(value) for method, value in item.items() if method != "parameters"}
    if item.get("parameters"):
        out["parameters"] = [_parameter(p) for p in item["parameters"]]
    return out


def _operation(operation: Document) -> Document:
    out: Document = {
        "consumes": ["*/*"],
        "produces": ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"],
        "schemes": ["https"],
        "operationId": operation["operationId"],
        "parameters": [_parameter(p) for p in operation["parameters"]],
        "responses": {code: _response(r) for code, r in operation["responses"].items()},
    }
    body = operation.get("requestBody")
    if body is not None:
        content = body["content"]
        out["consumes"] = list(content)
        found: Document = {"name": "body", "in": "body", "schema": _schema(next(iter(content.values()))["schema"])}
        out["parameters"].insert(0, {**found, "required": True} if body.get("required") else found)
    return out | {k: v for k, v in operation.items() if k.startswith("x-")}


def _parameter(parameter: Document) -> Document:
    schema: Document = parameter["schema"]
    return {k: v for k, v in parameter.items() if k != "schema"} | schema


def _response(response: Document) -> Document:
    [content] = response["content"].values()
    return {"description": response["description"], "schema": _schema(content["schema"])}
