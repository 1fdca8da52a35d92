"""Whether a CRD's schema is structural: the rules that kube-apiserver checks before it serves one.

Called when a CRD or an APIResourceSchema is validated. Every node must say its type; combinators may only restrict
values; nothing may refer, nothing may be both struct and map; list types must have their keys; defaults must be valid.
The texts are Kubernetes'.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apiserver.model.errors import Cause
from apiserver.schema import rules_defaults, rules_lists, rules_nested, rules_shape
from apiserver.schema.messages import forbidden, invalid, required, unsupported
from apiserver.schema.scalars import compile_pattern

Json = dict[str, Any]

ROOT, ITEM, FIELD = "at the root", "for specified array items", "for specified object fields"
TYPES = ["array", "boolean", "integer", "number", "object", "string"]
IMPLICIT = ("metadata", "apiVersion", "kind")
PRESERVE = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING = "x-kubernetes-int-or-string"
EMBEDDED = "x-kubernetes-embedded-resource"

_UNSUPPORTED = {
    "id": "id is not supported",
    "additionalItems": "additionalItems is not supported",
    "patternProperties": "patternProperties is not supported",
    "definitions": "definitions is not supported",
    "dependencies": "dependencies is not supported",
    "$ref": "$ref is not supported",
}


def check_structural(openapi: Json, path: str = "spec.validation.openAPIV3Schema") -> list[Cause]:
    """All violations, sorted by field and text; [] for a structural schema.

    `path` is where the schema stands: kube-apiserver says `spec.validation.openAPIV3Schema` when all versions of a CRD
    share one, else `spec.versions[0].schema.openAPIV3Schema`.
    """
    try:
        return _violations(openapi, path)
    except RecursionError:
        return [invalid(path, "", "is nested too deeply")]


def _violations(openapi: Json, path: str) -> list[Cause]:
    malformed = list(rules_shape.check(openapi, path))
    if malformed:
        return malformed
    found = [
        *_node(openapi, path, ROOT),
        *rules_nested.check_described(openapi, path),
        *_everywhere(openapi, path, True, ""),
    ]
    if not found:
        found = rules_defaults.check(openapi, path)
    return sorted(dict.fromkeys(found), key=lambda c: (c.field, c.message))


# --- structure: each node says what it is -----------------------------------------------------------------------------


def _node(schema: Json, path: str, level: str) -> Iterator[Cause]:
    """The rules of the structure proper: properties, items, additionalProperties. `level` says what the node is."""
    kind = schema.get("type") or ""
    if kind == "array" and not isinstance(schema.get("items"), dict):
        yield required(f"{path}.items", "must be specified")
    if isinstance(schema.get("items"), dict):
        yield from _node(schema["items"], f"{path}.items", ITEM)
    for name, child in (schema.get("properties") or {}).items():
        yield from _node(child, f"{path}.properties[{name}]", FIELD)
    additional = schema.get("additionalProperties")
    if additional is not None:
        if level == ROOT:
            yield forbidden(f"{path}.additionalProperties", "must not be used at the root")
        if isinstance(additional, dict):
            yield from _node(additional, f"{path}.additionalProperties", FIELD)
    yield from _type(schema, kind, path, level)
    yield from _extensions(schema, path)
    yield from rules_nested.check(schema, path)
    yield from _implicit_fields(schema, path, level)


def _type(schema: Json, kind: str, path: str, level: str) -> Iterator[Cause]:
    at = f"{path}.type"
    if schema.get(EMBEDDED):
        why = "must be object if x-kubernetes-embedded-resource is true"
        if not kind:
            yield required(at, why)
        elif kind != "object":
            yield invalid(at, kind, why)
    elif not kind and not schema.get(INT_OR_STRING) and not schema.get(PRESERVE):
        yield required(at, f"must not be empty {level}")
    if level == ROOT and kind and kind != "object":
        yield invalid(at, kind, "must be object at the root")


def _extensions(schema: Json, path: str) -> Iterator[Cause]:
    if schema.get(INT_OR_STRING):
        for name in (PRESERVE, EMBEDDED):
            if schema.get(name):
                yield invalid(f"{path}.{name}", True, "must be false if x-kubernetes-int-or-string is true")
    if schema.get(EMBEDDED):
        if schema.get("additionalProperties") is not None:
            why = "must not be used if x-kubernetes-embedded-resource is set"
            yield forbidden(f"{path}.additionalProperties", why)
        if not schema.get(PRESERVE) and not schema.get("properties"):
            why = f"must not be empty if x-kubernetes-embedded-resource is true without {PRESERVE}"
            yield required(f"{path}.properties", why)


def _implicit_fields(schema: Json, path: str, level: str) -> Iterator[Cause]:
    """apiVersion, kind and metadata of whole objects: implied, so they may hardly be restricted."""
    properties = schema.get("properties") or {}
    whole = level == ROOT or bool(schema.get(EMBEDDED))
    if not whole:
        return
    for name, wanted in (("kind", "string"), ("apiVersion", "string"), ("metadata", "object")):
        if name in properties and properties[name].get("type") != wanted:
            yield invalid(f"{path}.properties[{name}].type", properties[name].get("type") or "", f"must be {wanted}")
    metadata = properties.get("metadata")
    if level == ROOT and metadata is not None and not _is_plain_metadata(metadata):
        why = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield forbidden(f"{path}.properties[metadata]", why)


def _is_plain_metadata(metadata: Json) -> bool:
    allowed = set(metadata.get("properties") or {}) <= {"name", "generateName"}
    # `default` has a message of its own.
    rest = {k for k, v in metadata.items() if v not in (None, "", False, [], {})} - {"type", "properties", "default"}
    return allowed and not rest


# --- everywhere: keywords, in the structure and in combinators --------------------------------------------------------


def _everywhere(schema: Json, path: str, root: bool, no_defaults: str) -> Iterator[Cause]:
    """`no_defaults` says why defaults are forbidden here, if they are."""
    yield from _keywords(schema, path, no_defaults)
    yield from rules_lists.check(schema, path)
    yield from _expressions(schema, path)
    for name, child in (schema.get("properties") or {}).items():
        here = no_defaults
        if root and name in IMPLICIT:
            here = f" in top-level {name}"
        yield from _everywhere(child, f"{path}.properties[{name}]", False, here)
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        yield from _everywhere(additional, f"{path}.additionalProperties", False, no_defaults)
    if isinstance(schema.get("items"), dict):
        yield from _everywhere(schema["items"], f"{path}.items", False, no_defaults)
    if schema.get("not") is not None:
        yield from _everywhere(schema["not"], f"{path}.not", False, no_defaults)
    for key in ("allOf", "anyOf", "oneOf"):
        for index, child in enumerate(schema.get(key) or ()):
            yield from _everywhere(child, f"{path}.{key}[{index}]", False, no_defaults)


def _keywords(schema: Json, path: str, no_defaults: str) -> Iterator[Cause]:
    kind = schema.get("type") or ""
    if kind == "null":
        yield forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
    if kind and kind not in TYPES:
        yield unsupported(f"{path}.type", kind, TYPES)
    if schema.get("default") is not None and no_defaults:
        yield forbidden(f"{path}.default", f"must not be set{no_defaults}")
    for name, why in _UNSUPPORTED.items():
        if schema.get(name) not in (None, "", {}):
            yield forbidden(f"{path}.{name}", why)
    if isinstance(schema.get("items"), list):
        yield forbidden(f"{path}.items", "items must be a schema object and not an array")
    if schema.get("uniqueItems"):
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{path}.uniqueItems", why)
    additional = schema.get("additionalProperties")
    if schema.get("properties") and additional is not None and additional is not True:
        yield forbidden(f"{path}.additionalProperties", "additionalProperties and properties are mutual exclusive")
    if schema.get(PRESERVE) is False:
        yield invalid(f"{path}.{PRESERVE}", False, "must be true or undefined")


def _expressions(schema: Json, path: str) -> Iterator[Cause]:
    if schema.get("pattern"):
        try:
            compile_pattern(schema["pattern"])
        except ValueError as error:
            why = f"must be a valid regular expression, but isn't: {error}"
            yield invalid(f"{path}.pattern", schema["pattern"], why)
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        at = f"{path}.x-kubernetes-validations[{index}]"
        if not isinstance(rule, dict) or not str(rule.get("rule") or "").strip():
            yield required(f"{at}.rule", "rule is not specified")
