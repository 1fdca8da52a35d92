"""allOf, anyOf, oneOf and not: value validations over a whole value. Called by checks.py.

Kubernetes reports what failed inside next to the verdict, and gives the verdict no field.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apiserver.model.errors import Cause
from apiserver.schema.messages import quote, unlocated
from apiserver.schema.node import Check, Node, Path, render

Json = dict[str, Any]


def steps(raw: Json, compile_schema: Callable[[Json], Node]) -> list[Check]:
    out: list[Check] = []
    if raw.get("anyOf"):
        out.append(_any_of([compile_schema(s) for s in raw["anyOf"]]))
    if raw.get("oneOf"):
        out.append(_one_of([compile_schema(s) for s in raw["oneOf"]]))
    if raw.get("allOf"):
        out.append(_all_of([compile_schema(s) for s in raw["allOf"]]))
    if raw.get("not"):
        out.append(_not(compile_schema(raw["not"])))
    return out


def _failures(node: Node, value: Any, path: Path) -> list[Cause]:
    found: list[Cause] = []
    node.check(value, path, found)
    return found


def _any_of(nodes: list[Node]) -> Check:
    def check(value: Any, path: Path, errors: list[Cause]) -> None:
        first: list[Cause] = []
        for node in nodes:
            found = _failures(node, value, path)
            if not found:
                return
            first = first or found
        errors.append(unlocated(f"{quote(render(path))} must validate at least one schema (anyOf)"))
        errors.extend(first)

    return check


def _one_of(nodes: list[Node]) -> Check:
    def check(value: Any, path: Path, errors: list[Cause]) -> None:
        results = [_failures(node, value, path) for node in nodes]
        valid = sum(not found for found in results)
        if valid == 1:
            return
        count = "Found none valid" if valid == 0 else f"Found {valid} valid alternatives"
        errors.append(unlocated(f"{quote(render(path))} must validate one and only one schema (oneOf). {count}"))
        if valid == 0:
            errors.extend(results[0])

    return check


def _all_of(nodes: list[Node]) -> Check:
    def check(value: Any, path: Path, errors: list[Cause]) -> None:
        results = [_failures(node, value, path) for node in nodes]
        failed = [found for found in results if found]
        for found in failed:
            errors.extend(found)
        if failed:
            tail = ". None validated" if len(failed) == len(nodes) else ""
            errors.append(unlocated(f"{quote(render(path))} must validate all the schemas (allOf){tail}"))

    return check


def _not(node: Node) -> Check:
    def check(value: Any, path: Path, errors: list[Cause]) -> None:
        if not _failures(node, value, path):
            errors.append(unlocated(f"{quote(render(path))} must not validate the schema (not)"))

    return check
