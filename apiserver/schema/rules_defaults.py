"""Rules for defaults: each validates against its own schema, and has no field that the schema does not know.

Called by rules.py once the schema is otherwise structural.
"""

from __future__ import annotations

from typing import Any

from apiserver.model.errors import Cause
from apiserver.schema.defaults import copy_json
from apiserver.schema.messages import invalid
from apiserver.schema.node import MISSING, Node
from apiserver.schema.prune import prune
from apiserver.schema.structural import compile_schema


def check(openapi: dict[str, Any], path: str) -> list[Cause]:
    found: list[Cause] = []
    _walk(compile_schema(openapi).root, path, found)
    return found


def _walk(node: Node, path: str, found: list[Cause]) -> None:
    if node.default is not MISSING:
        _default(node, f"{path}.default", found)
    if node.items is not None:
        _walk(node.items, f"{path}.items", found)
    if node.additional is not None:
        _walk(node.additional, f"{path}.additionalProperties", found)
    for name, child in node.properties.items():
        _walk(child, f"{path}.properties[{name}]", found)


def _default(node: Node, path: str, found: list[Cause]) -> None:
    pruned = copy_json(node.default)
    if prune(pruned, node, root=False):
        found.append(invalid(path, node.default, "must not have unknown fields"))
    node.check(node.default, (None, path), found)
