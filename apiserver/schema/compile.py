"""OpenAPI schemas into nodes (node.py). Called by structural.py only.

Nodes are interned by content: two CRDs that say `{"type": "string"}` share one node, two workspaces with the same CRD
share all of them. Built-in kinds may refer to definitions, which may be recursive (JSONSchemaProps is): those are
compiled once per set of definitions, when first met.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any
from weakref import WeakValueDictionary

import orjson

from apiserver.schema import checks
from apiserver.schema.node import Node

Json = dict[str, Any]

_BELOW = ("properties", "additionalProperties", "items")

_interned: WeakValueDictionary[tuple[Any, ...], Node] = WeakValueDictionary()


def digest(value: Any) -> bytes:
    """SHA-256 of the value as JSON with sorted keys."""
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).digest()


class Compiler:
    """Compiles schemas of one sort: of CRDs (`definitions` None) or built-in, over one set of definitions."""

    def __init__(
        self,
        builtin: bool,
        definitions: Mapping[str, Json] | None = None,
        omitted: Mapping[str, frozenset[str]] | None = None,
    ) -> None:
        """`omitted`: by definition, the fields that are left out where they are empty."""
        self.builtin = builtin
        self.definitions = definitions or {}
        self.omitted = omitted or {}
        self._referred: dict[tuple[str, bytes], Node] = {}
        self._seen: dict[int, Node] = {}

    def compile(self, raw: Json) -> Node:
        """The node of a schema. Raises KeyError for a `$ref` to no definition."""
        self._seen = {}  # by identity: a filled-in schema repeats the same dicts, and they live as long as this call
        return self._node(raw)

    def _node(self, raw: Json) -> Node:
        node = self._seen.get(id(raw))
        if node is None:
            name, resolved = self._resolve(raw) if self.builtin else ("", raw)
            node = self._seen[id(raw)] = self._named(name, resolved) if name else self._inline(resolved)
        return node

    def _named(self, name: str, raw: Json) -> Node:
        key = (name, digest({k: v for k, v in raw.items() if k not in _BELOW}))
        node = self._referred.get(key)
        if node is None:
            node = self._referred[key] = Node()  # before its children: they may refer to it
            self._link(node, raw)
            self._fill(node, raw)
            node.name = name
            node.omitted = self.omitted.get(name, node.omitted)
        return node

    def _inline(self, raw: Json) -> Node:
        node = Node()
        self._link(node, raw)
        key = (self.builtin, digest({k: v for k, v in raw.items() if k not in _BELOW}), node.closed, *self._ids(node))
        known = _interned.get(key)
        if known is not None:
            return known
        self._fill(node, raw)
        _interned[key] = node
        return node

    @staticmethod
    def _ids(node: Node) -> tuple[Any, ...]:
        # Identities of live nodes: a parent keeps its children, so an entry is gone before one can be reused.
        fields = tuple((name, id(child)) for name, child in sorted(node.properties.items()))
        return (fields, id(node.additional), id(node.items))

    def _resolve(self, raw: Json) -> tuple[str, Json]:
        """Follows `$ref` and `allOf: [{$ref}]`; what stands beside the reference wins (list type, default)."""
        reference = raw.get("$ref")
        if reference is None:
            parts: list[Json] = raw.get("allOf") or []
            if len(parts) != 1 or "$ref" not in parts[0]:
                return "", raw
            reference = parts[0]["$ref"]
        name = reference.removeprefix("#/definitions/").removeprefix("#/components/schemas/")
        inner, target = self._resolve(self.definitions[name])
        beside = {k: v for k, v in raw.items() if k not in ("$ref", "allOf")}
        return inner or name, {**target, **beside}

    def _link(self, node: Node, raw: Json) -> None:
        """The nodes below."""
        properties: dict[str, Json] = raw.get("properties") or {}
        node.properties = {k: self._node(v) for k, v in properties.items()}
        node.defaulted = tuple(k for k, v in properties.items() if v.get("default") is not None)
        if self.builtin:
            required = [k for k in raw.get("required") or () if k in node.properties and k not in node.defaulted]
            node.nulls = tuple(k for k in required if properties[k].get("type") in ("array", "object"))
        additional = raw.get("additionalProperties")
        if isinstance(additional, dict):
            node.additional = self._node(additional)
        node.closed = additional is False
        if isinstance(raw.get("items"), dict):
            node.items = self._node(raw["items"])

    def _fill(self, node: Node, raw: Json) -> None:
        """What the schema says of the value itself; the nodes below are linked."""
        node.builtin = self.builtin
        node.format = raw.get("format") or ""
        go_int_or_string = self.builtin and node.format == "int-or-string"
        node.int_or_string = go_int_or_string or bool(raw.get("x-kubernetes-int-or-string"))
        node.types = ("integer", "string") if node.int_or_string else tuple(filter(None, [raw.get("type")]))
        node.nullable = bool(raw.get("nullable"))
        node.embedded = bool(raw.get("x-kubernetes-embedded-resource"))
        node.list_type = raw.get("x-kubernetes-list-type") or ""
        node.map_keys = tuple(raw.get("x-kubernetes-list-map-keys") or ())
        node.map_type = raw.get("x-kubernetes-map-type") or ""
        node.rules = raw.get("x-kubernetes-validations") or []
        if raw.get("default") is not None:
            node.default = raw["default"]
        node.preserve = self._preserves(node, raw)
        node.check, node.plain = checks.build(node, raw, self._node)

    def _preserves(self, node: Node, raw: Json) -> bool:
        if raw.get("x-kubernetes-preserve-unknown-fields") or raw.get("additionalProperties") is True:
            return True
        # Kubernetes' RawExtension, FieldsV1 and JSON have no fields in the facts: anything goes. A struct without
        # fields looks the same, and nothing is lost by keeping what is written there.
        free = not node.properties and node.additional is None and node.items is None
        return self.builtin and free and node.types in ((), ("object",)) and "oneOf" not in raw
