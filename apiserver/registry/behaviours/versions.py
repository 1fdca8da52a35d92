"""One version of a CustomResourceDefinition or APIResourceSchema: its schema, columns, selectable fields, subresources,
the warning of a deprecated one. Called by definitions.py.
"""

from __future__ import annotations

from collections.abc import Callable

from apiserver.model.errors import Cause
from apiserver.registry import jsonpath
from apiserver.registry.behaviours.base import Object
from apiserver.schema import messages
from apiserver.schema.rules import check_structural

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_SELECTABLE_TYPES = ("string", "boolean", "integer")
_MOST_SELECTABLE = 8
_LONGEST_WARNING = 256
_SIMPLE_PATH = "must be a simple json path starting with ."


_PARTS = {"schema": "validation", **{p: p for p in ("subresources", "additionalPrinterColumns", "selectableFields")}}
"""Parts of a version, and what they are called where all versions share one."""

Where = Callable[[str], str | None]
"""Where a part of a version stands; None if it was looked at with another version."""


def shared(versions: list[Object]) -> Callable[[int], Where]:
    """The Where of each version of a CustomResourceDefinition. What is the same in all of them is looked at once, and
    its errors are said of `spec`, as kube-apiserver does."""
    same = {p for p in _PARTS if all(v.get(p) == versions[0].get(p) for v in versions)}

    def where(index: int) -> Where:
        def find(part: str) -> str | None:
            if part not in same:
                return f"spec.versions[{index}].{part}"
            return None if index else f"spec.{_PARTS[part]}"

        return find

    return where


def documented(field: str) -> str:
    """The place in a CustomResourceDefinition's manifest that an error's field means."""
    for part, name in _PARTS.items():
        if field.startswith((f"spec.{name}.", f"spec.{name}[")):
            return f"spec.versions[0].{part}{field.removeprefix(f'spec.{name}')}"
    return field


def check_version(index: int, version: Object, where: Where) -> list[Cause]:
    """Its errors, but for those of a CustomResourceDefinition's schema that is not there at all."""
    checks = {"schema": schema_errors, "subresources": _scale, "additionalPrinterColumns": _columns,
              "selectableFields": _selectable}  # fmt: skip
    causes = _deprecation(f"spec.versions[{index}]", version)
    for part, check in checks.items():
        path = where(part)
        if path is not None:
            causes += check(path, version)
    return causes


def schema_errors(path: str, version: Object) -> list[Cause]:
    """Why a version's schema is not structural; a CustomResourceDefinition wraps it."""
    schema: Object | None = version.get("schema")
    if schema is not None and "openAPIV3Schema" in schema:
        return check_structural(schema["openAPIV3Schema"] or {}, f"{path}.openAPIV3Schema")
    return check_structural(schema, path) if schema else []


def _deprecation(path: str, version: Object) -> list[Cause]:
    text, at = version.get("deprecationWarning"), f"{path}.deprecationWarning"
    if text is None:
        return []
    if not version.get("deprecated"):
        return [messages.invalid(at, text, "can only be set for deprecated versions")]
    causes = []
    if len(text.encode()) > _LONGEST_WARNING:
        causes.append(messages.invalid(at, text, f"must be <= {_LONGEST_WARNING} characters long"))
    if not text:
        causes.append(messages.invalid(at, text, "must not be an empty string"))
    odd = next((i for i, char in enumerate(text) if not char.isprintable()), None)
    if odd is not None:
        index = len(text[:odd].encode())
        why = f"must only contain printable UTF-8 characters; non-printable character found at index {index}"
        causes.append(messages.invalid(at, text, why))
    return causes


def _columns(path: str, version: Object) -> list[Cause]:
    causes = []
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        at = f"{path}[{index}]"
        causes += [messages.required(f"{at}.{f}") for f in ("name", "type", "jsonPath") if not column.get(f)]
        for field, allowed in (("type", _COLUMN_TYPES), ("format", _COLUMN_FORMATS)):
            if column.get(field) and column[field] not in allowed:
                causes.append(messages.invalid(f"{at}.{field}", column[field], f"must be one of {','.join(allowed)}"))
        if column.get("jsonPath"):
            causes += _column_path(f"{at}.jsonPath", column["jsonPath"])
    return causes


def _column_path(at: str, text: str) -> list[Cause]:
    if not text.startswith("."):
        return [messages.invalid(at, text, _SIMPLE_PATH)]
    try:
        jsonpath.compile_path(text)
    except ValueError as error:
        return [messages.invalid(at, text, str(error))]
    return []


def _selectable(path: str, version: Object) -> list[Cause]:
    wrapped: Object = version.get("schema") or {}
    schema: Object = wrapped.get("openAPIV3Schema") or wrapped
    causes, seen = [], set()
    for index, field in enumerate(version.get("selectableFields") or ()):
        at, text = f"{path}[{index}].jsonPath", field.get("jsonPath") or ""
        if not text:
            causes.append(messages.required(at))
            continue
        try:
            found = _field(text, schema)
        except ValueError as error:
            causes.append(messages.invalid(at, text, f"is an invalid path: {error}"))
            continue
        if text.startswith(".metadata"):
            causes.append(messages.invalid(at, text, "must not point to fields in metadata"))
        if found.get("type") not in _SELECTABLE_TYPES:
            why = "must point to a field of type string, boolean or integer."
            why += " Enum string fields and strings with formats are allowed."
            causes.append(messages.invalid(at, text, why))
        if text in seen:
            causes.append(messages.duplicate(at, text))
        seen.add(text)
    if len(seen) > _MOST_SELECTABLE:
        causes.append(messages.too_many(path, len(seen), _MOST_SELECTABLE))
    return causes


def _field(text: str, schema: Object) -> Object:
    """The schema of the field that a path like `.spec.size` leads to. Raises ValueError."""
    if not text.startswith((".", "[")):
        raise ValueError(f"expected [ or . but got: {text.partition('.')[0]}")
    if "[" in text:
        raise ValueError("array notation is not allowed")
    for name in text[1:].split("."):
        if not name:
            raise ValueError("unexpected end of JSON path")
        properties = schema.get("properties") or {}
        if name not in properties:
            raise ValueError("does not refer to a valid field")
        schema = properties[name]
    return schema


def _scale(path: str, version: Object) -> list[Cause]:
    scale = (version.get("subresources") or {}).get("scale")
    if not isinstance(scale, dict):
        return []
    causes = []
    for field, prefixes in (
        ("specReplicasPath", (".spec.",)),
        ("statusReplicasPath", (".status.",)),
        ("labelSelectorPath", (".spec.", ".status.")),
    ):
        value = scale.get(field) or ""
        at = f"{path}.scale.{field}"
        if not value and field != "labelSelectorPath":
            causes.append(messages.required(at))
        elif value and not value.startswith("."):
            causes.append(messages.invalid(at, value, _SIMPLE_PATH))
        elif value and not value.startswith(prefixes):
            text = f"should be a json path under {' or '.join(p.rstrip('.') for p in prefixes)}"
            causes.append(messages.invalid(at, value, text))
    return causes
