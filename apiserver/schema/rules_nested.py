"""Rules for what stands inside allOf, anyOf, oneOf and not: it restricts values and describes nothing.

Called by rules.py for each node of the structure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apiserver.model.errors import Cause
from apiserver.schema.messages import forbidden, required

Json = dict[str, Any]

_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_FORBIDDEN = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    "externalDocs": "must be undefined to be structural",
    "x-kubernetes-preserve-unknown-fields": "must be false to be structural",
    "x-kubernetes-embedded-resource": "must be false to be structural",
    "x-kubernetes-int-or-string": "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}


def check(schema: Json, path: str) -> Iterator[Cause]:
    """Of one node of the structure: its combinators restrict values and nothing else."""
    whole = schema.get("anyOf") == _INT_OR_STRING
    for nested, at in _nested(schema, path):
        if whole and at.startswith(f"{path}.anyOf["):
            continue  # the two forms in which int-or-string is written may name types: this one, and first in allOf
        if at == f"{path}.allOf[0]" and nested.get("anyOf") == _INT_OR_STRING:
            nested = {k: v for k, v in nested.items() if k != "anyOf"}
        yield from _restricts_only(nested, at)


def check_described(schema: Json, path: str) -> Iterator[Cause]:
    """Of the root: its combinators speak only of fields and items that the structure has."""
    for nested, at in _nested(schema, path):
        yield from _described(nested, schema, at, path)


def _nested(schema: Json, path: str) -> Iterator[tuple[Json, str]]:
    """Each schema directly inside a combinator, and where it stands."""
    for keyword in ("anyOf", "allOf", "oneOf"):
        for index, nested in enumerate(schema.get(keyword) or ()):
            yield nested, f"{path}.{keyword}[{index}]"
    if schema.get("not") is not None:
        yield schema["not"], f"{path}.not"


def _below(schema: Json, path: str) -> Iterator[tuple[Json, str]]:
    yield from _nested(schema, path)
    if isinstance(schema.get("items"), dict):
        yield schema["items"], f"{path}.items"
    for name, child in (schema.get("properties") or {}).items():
        yield child, f"{path}.properties[{name}]"


def _restricts_only(schema: Json, path: str) -> Iterator[Cause]:
    for name, why in _FORBIDDEN.items():
        if schema.get(name) not in (None, False, "", []) or (name == "additionalProperties" and name in schema):
            yield forbidden(f"{path}.{name}", why)
    if "metadata" in (schema.get("properties") or {}):
        yield forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")
    for child, at in _below(schema, path):
        yield from _restricts_only(child, at)


def _described(nested: Json, structure: Json, path: str, base: str) -> Iterator[Cause]:
    """`nested` stands at `path`; `structure`, at `base`, is what it restricts."""
    known = structure.get("properties") or {}
    for name, child in (nested.get("properties") or {}).items():
        at = f"{path}.properties[{name}]"
        if name in known:
            yield from _described(child, known[name], at, f"{base}.properties[{name}]")
        else:
            yield required(f"{base}.properties[{name}]", f"because it is defined in {at}")
    if isinstance(nested.get("items"), dict):
        if isinstance(structure.get("items"), dict):
            yield from _described(nested["items"], structure["items"], f"{path}.items", f"{base}.items")
        else:
            yield required(f"{base}.items", f"because it is defined in {path}.items")
    for deeper, at in _nested(nested, path):
        yield from _described(deeper, structure, at, base)
