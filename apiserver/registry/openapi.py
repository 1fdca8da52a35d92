"""OpenAPI v3 documents of a table of kinds, one per group and version, as kubectl and its relatives read them.

kubectl looks for the PATCH operation of a kind and its `fieldValidation` parameter before it leaves validation to the
server, and `kubectl explain` goes from path to kind to schema. Connections (logs, exec, …) are no documents and are
left out. Pure; caching and HTTP are the endpoints'.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import orjson

from apiserver.registry import descriptions, subresources
from apiserver.registry.facts import load
from apiserver.registry.kinds import KindTable, ServedKind
from apiserver.registry.schemas import OBJECT_META, REFERENCE, definitions

Document = dict[str, Any]

_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_EVERYWHERE = [*(f"{_META}{name}" for name in ("DeleteOptions", "ListMeta", "Status")), OBJECT_META]
ROOTS = [*_EVERYWHERE, *subresources.SCHEMAS.values()]
"""Definitions that operations of any kind refer to."""
_REFERENCES = re.compile(rb'"#/components/schemas/([^"]+)"')
_JSON = "application/json"
_PATCHES = ["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"]
_STRATEGIC = "application/strategic-merge-patch+json"
_ACTIONS = {"create": "post", "update": "put", "deletecollection": "delete"}
_WRITE_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")
_LIST_PARAMETERS = (
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
)
_DELETE_PARAMETERS = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
_TYPES = {
    "allowWatchBookmarks": "boolean",
    "force": "boolean",
    "gracePeriodSeconds": "integer",
    "limit": "integer",
    "orphanDependents": "boolean",
    "sendInitialEvents": "boolean",
    "timeoutSeconds": "integer",
    "watch": "boolean",
}


def document(kinds: KindTable, group: str, version: str) -> Document:
    """Of one group and version; without paths if it is not served."""
    served = [k for k in kinds.all() if (k.group, k.version) == (group, version)]
    paths: Document = {}
    schemas: Document = {}
    for kind in served:
        own = of_kind(kind)
        paths |= own.paths
        schemas |= own.schemas
    add_referred(schemas, _roots(served))
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": f"v{load.kubernetes()['version']}.0"},
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": dict(sorted(schemas.items()))},
    }


class OfKind(NamedTuple):
    """What a document says of one kind: operations by path, its own schemas by name."""

    paths: Document
    schemas: Document


def of_kind(kind: ServedKind) -> OfKind:
    name = definition_name(kind)
    schemas = {name: _schema(kind)}
    if "list" in kind.verbs:
        schemas[f"{name}List"] = _list_schema(kind, name)
    return OfKind(_paths(kind, name), schemas)


def definition_name(kind: ServedKind) -> str:
    """`io.k8s.api.apps.v1.Deployment`; of a custom resource the reversed group, version and kind."""
    if kind.source.definition:
        return kind.source.definition
    return ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])


def _roots(served: list[ServedKind]) -> list[str]:
    there = {subresource for kind in served for subresource in kind.subresources}
    return [*_EVERYWHERE, *(schema for name, schema in subresources.SCHEMAS.items() if name in there)]


def add_referred(schemas: Document, roots: list[str]) -> None:
    """Adds the definitions that are named in `roots` and in `schemas`, and all that they refer to."""
    known = definitions()
    todo = [*roots, *_referred(schemas)]
    while todo:
        name = todo.pop()
        if name not in schemas and name in known:
            schemas[name] = _described(name, known[name])
            todo += _referred(known[name])


def _referred(schema: Document) -> list[str]:
    return [match.decode() for match in _REFERENCES.findall(orjson.dumps(schema))]


def _described(name: str, schema: Document) -> Document:
    texts = descriptions.OBJECT_META if name == OBJECT_META else {}
    return _with_descriptions(schema, texts)


def _with_descriptions(schema: Document, texts: dict[str, str]) -> Document:
    """`schema` with a text for each property that has none of its own."""
    properties = schema.get("properties")
    if not properties or not texts:
        return schema
    described = {k: {"description": texts[k], **v} if k in texts else v for k, v in properties.items()}
    return {**schema, "properties": described}


def _schema(kind: ServedKind) -> Document:
    gvk = [{"group": kind.group, "version": kind.version, "kind": kind.kind}]
    if kind.source.definition:
        return _with_descriptions(definitions()[kind.source.definition], descriptions.EVERY_OBJECT)
    schema = kind.source.openapi
    metadata = {"allOf": [{"$ref": REFERENCE + OBJECT_META}]}
    properties = {**descriptions.with_conditions(kind, schema["properties"]), "metadata": metadata}
    described = _with_descriptions({**schema, "properties": properties}, descriptions.EVERY_OBJECT)
    return {**described, "x-kubernetes-group-version-kind": gvk}


def _list_schema(kind: ServedKind, name: str) -> Document:
    properties = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"allOf": [{"$ref": f"{REFERENCE}{_META}ListMeta"}]},
        "items": {"type": "array", "items": {"$ref": REFERENCE + name}},
    }
    schema = {
        "description": f"{kind.list_kind} is a list of {kind.kind}.",
        "type": "object",
        "required": ["items"],
        "properties": properties,
        "x-kubernetes-group-version-kind": [{"group": kind.group, "version": kind.version, "kind": kind.list_kind}],
    }
    return _with_descriptions(schema, descriptions.EVERY_LIST)


def _paths(kind: ServedKind, name: str) -> Document:
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    everywhere = f"{root}/{kind.resource}"
    collection = f"{root}/namespaces/{{namespace}}/{kind.resource}" if kind.namespaced else everywhere
    one = f"{collection}/{{name}}"
    gvk = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    listed = f"{name}List"
    found: Document = {}
    whole = {"list": listed, "create": name, "deletecollection": f"{_META}Status"}
    single = {"get": name, "update": name, "patch": name, "delete": f"{_META}Status"}
    _add(found, collection, kind, gvk, {v: a for v, a in whole.items() if v in kind.verbs})
    _add(found, one, kind, gvk, {v: a for v, a in single.items() if v in kind.verbs})
    if kind.namespaced and "list" in kind.verbs:
        _add(found, everywhere, kind, gvk, {"list": listed})
    for subresource in kind.subresources - subresources.CONNECTIONS:
        taken = subresources.of(kind, subresource)
        about = dict(zip(("group", "version", "kind"), taken.kind, strict=True))
        _add(found, f"{one}/{subresource}", kind, about, dict.fromkeys(taken.verbs, taken.schema or name))
    return found


def _add(found: Document, path: str, kind: ServedKind, gvk: Document, answers: dict[str, str]) -> None:
    """The operations of one path; `answers` gives the schema name of each verb's answer."""
    if not answers:
        return
    places = [p for p in ("namespace", "name") if f"{{{p}}}" in path]
    item: Document = {"parameters": [_parameter(p, "path") for p in places]} if places else {}
    for verb, answer in answers.items():
        method = {"list": "get"}.get(verb, _ACTIONS.get(verb, verb))
        item[method] = _operation(verb, path, kind, gvk, answer)
    found[path] = item


def _operation(verb: str, path: str, kind: ServedKind, gvk: Document, answer: str) -> Document:
    action = {"create": "post", "update": "put"}.get(verb, verb)
    words = re.sub(r"[^A-Za-z0-9]+", " ", path).title().replace(" ", "")
    schema = {"$ref": REFERENCE + answer}
    ok = {"description": "OK", "content": {_JSON: {"schema": schema}}}
    operation: Document = {
        "operationId": f"{verb}{words}",
        "parameters": [_parameter(p, "query") for p in _query(verb)],
        "responses": {"201" if verb == "create" else "200": ok},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": gvk,
    }
    if verb in ("create", "update"):
        operation["requestBody"] = {"required": True, "content": {"*/*": {"schema": schema}}}
    elif verb == "patch":
        forms = _PATCHES if kind.custom else [*_PATCHES, _STRATEGIC]
        operation["requestBody"] = {"required": True, "content": {f: {"schema": {"type": "object"}} for f in forms}}
    elif verb in ("delete", "deletecollection"):
        options = {"$ref": f"{REFERENCE}{_META}DeleteOptions"}
        operation["requestBody"] = {"content": {"*/*": {"schema": options}}}
    return operation


def _query(verb: str) -> tuple[str, ...]:
    match verb:
        case "create" | "update":
            return ("pretty", *_WRITE_PARAMETERS)
        case "patch":
            return ("pretty", *_WRITE_PARAMETERS, "force")
        case "list":
            return ("pretty", *_LIST_PARAMETERS)
        case "delete":
            return ("pretty", *_DELETE_PARAMETERS)
        case "deletecollection":
            return ("pretty", *_LIST_PARAMETERS[1:-1], *_DELETE_PARAMETERS)
        case _:
            return ("pretty",)


def _parameter(name: str, place: str) -> Document:
    found: Document = {"name": name, "in": place, "schema": {"type": _TYPES.get(name, "string"), "uniqueItems": True}}
    return {**found, "required": True} if place == "path" else found
