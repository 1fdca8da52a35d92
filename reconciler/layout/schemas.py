"""The layout's own files against their JSON Schemas (repo-layout/schemas), with faults in words and lines.

Called by fleet and workspace. The schemas are data of the package `repo_layout`, so editors can use them too, and
docs/kinds.md is made of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

import jsonschema
from jsonschema.exceptions import ValidationError

from reconciler.layout.errors import LayoutError
from reconciler.layout.faults import type_name
from reconciler.layout.yamldoc import YamlDocument, line_of

_TYPES = {"object": "a mapping", "string": "text", "integer": "an integer", "array": "a list", "boolean": "a boolean"}


def schema(name: str) -> dict[str, Any]:
    """`fleet` is treeplane.yaml's, `workspace` that of workspace.yaml."""
    found: dict[str, Any] = json.loads(files("repo_layout").joinpath("schemas", f"{name}.json").read_text("utf-8"))
    return found


@cache
def _validator(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(schema(name))


def check(name: str, document: YamlDocument, path: str) -> list[LayoutError]:
    """Faults of a document (read with positions) against the schema `name`, in the order of the file."""
    found = [
        LayoutError(path, line_of(document, field), 0, message, hint)
        for error in _validator(name).iter_errors(document.value)
        for field, message, hint in _say(error)
    ]
    return sorted(found, key=lambda e: (e.line, e.message))


def _say(error: ValidationError) -> Iterator[tuple[str, str, str]]:
    field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path)[1:]
    wanted: Any = error.validator_value
    schema: Any = error.schema
    within = f"{field}." if field else ""
    if error.validator == "additionalProperties" and wanted is False:
        known = list(schema.get("properties", {}))
        for name in error.instance:
            if name not in known:
                yield f"{within}{name}", f"unknown field {within}{name}", f"known here: {', '.join(known)}"
    elif error.validator == "required":
        for name in wanted:
            if name not in error.instance:
                yield field, f"{within}{name} is missing", schema.get("properties", {}).get(name, {}).get("const", "")
    elif error.validator in ("const", "enum"):
        allowed = [wanted] if error.validator == "const" else wanted
        yield field, f"{field} is {error.instance!r}", f"supported: {', '.join(str(w) for w in allowed)}"
    elif error.validator == "type":
        yield field, f"{field or 'the document'} must be {_TYPES[wanted]}, not {type_name(error.instance)}", ""
    elif error.validator == "pattern":
        yield field, f"{field} is {error.instance!r}", f"it must match {wanted}"
    else:
        yield field, f"{field}: {error.message}", ""
