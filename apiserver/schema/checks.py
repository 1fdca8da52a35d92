"""Validation, compiled: one function per node, made once, called with (value, path, errors).

Called through Schema.validate. The order of errors within a value is Kubernetes' (type, combinators, string, number,
items, enum, properties), between fields that of the object. Rules (`x-kubernetes-validations`) are kept on the node
and not evaluated here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apiserver.model.errors import Cause
from apiserver.schema import combinators, lists, scalars
from apiserver.schema.messages import as_json, invalid, required, too_many, type_invalid, unsupported
from apiserver.schema.node import Check, Node, Path, accept, render

Json = dict[str, Any]

TYPE_NAMES: dict[type, str] = {
    str: "string",
    int: "integer",
    bool: "boolean",
    float: "number",
    list: "array",
    dict: "object",
    type(None): "null",
}
_CLASSES = {"string": str, "boolean": bool, "integer": int}
_GO_FORMATS = {int: "int64", float: "double"}


def build(node: Node, raw: Json, compile_schema: Callable[[Json], Node]) -> tuple[Check, type | None]:
    """The check of a node whose other fields are set, and the class that needs none (Node.plain)."""
    steps = [
        *combinators.steps(raw, compile_schema),
        *scalars.steps(node, raw),
        *lists.steps(node, raw),
        *_enum(raw),
        *_object(node, raw),
    ]
    if not node.types:
        return _untyped(steps), None
    typed = _typed(node, steps)
    return typed, (_CLASSES.get(node.types[0]) if not steps and len(node.types) == 1 else None)


def _untyped(steps: list[Check]) -> Check:
    if not steps:
        return accept

    def check(value: Any, path: Path, errors: list[Cause]) -> None:
        for step in steps:
            step(value, path, errors)

    return check


def _typed(node: Node, steps: list[Check]) -> Check:
    allowed = {cls for cls, name in TYPE_NAMES.items() if name in node.types}
    if "number" in node.types:
        allowed.add(int)
    whole_floats = "integer" in node.types
    null_allowed = node.nullable or node.builtin
    on_null = [s for s in steps if getattr(s, "on_null", False)]
    only = steps[0] if len(steps) == 1 else None

    def check(value: Any, path: Path, errors: list[Cause]) -> None:
        if value.__class__ in allowed:
            if only is not None:
                only(value, path, errors)
                return
            for step in steps:
                step(value, path, errors)
        elif value is None:
            if not null_allowed:
                errors.append(_mismatch(node, value, path))
            for step in on_null:
                step(value, path, errors)
        elif whole_floats and value.__class__ is float and value.is_integer():
            for step in steps:
                step(value, path, errors)
        else:
            errors.append(_mismatch(node, value, path))

    return check


def _mismatch(node: Node, value: Any, path: Path) -> Cause:
    field = render(path)
    expected, found = ",".join(node.types), TYPE_NAMES.get(value.__class__, "")
    checked_format = scalars.known_format(node)
    if checked_format and value is not None and value.__class__ not in (str, list):
        # Kubernetes compares formats first; of what has none it prints an empty one.
        expected, found = checked_format, _GO_FORMATS.get(value.__class__, "")
    return type_invalid(field, expected, found)


def _enum(raw: Json) -> list[Check]:
    values: list[Any] | None = raw.get("enum")
    if not values:
        return []
    keys = {_enum_key(v) for v in values}

    def check(value: Any, path: Path, errors: list[Cause]) -> None:
        if _enum_key(value) not in keys:
            errors.append(unsupported(render(path), value, values))

    check.on_null = True  # type: ignore[attr-defined]
    return [check]


def _enum_key(value: Any) -> Any:
    if value.__class__ in (str, int, float):
        return value  # 1 and 1.0 are the same, as in JSON
    return (value.__class__, as_json(value))


def _object(node: Node, raw: Json) -> list[Check]:
    steps: list[Check] = []
    low, high = raw.get("minProperties"), raw.get("maxProperties")
    if low is not None or high is not None:
        steps.append(_property_count(low, high))
    needed = () if node.builtin else tuple(raw.get("required") or ())
    if node.properties or node.additional is not None or node.closed:
        steps.append(_fields(node))
    if needed:
        steps.append(_required(needed))
    if node.embedded:
        steps.append(_embedded)
    return steps


def _property_count(low: int | None, high: int | None) -> Check:
    def check(value: Any, path: Path, errors: list[Cause]) -> None:
        if value.__class__ is not dict:
            return
        count = len(value)
        if low is not None and count < low:
            field = render(path)
            errors.append(invalid(field, count, f"{field} in body should have at least {low} properties"))
        if high is not None and count > high:
            errors.append(too_many(render(path), count, high))

    return check


def _fields(node: Node) -> Check:
    declared = node.properties.get
    additional, closed = node.additional, node.closed

    def check(value: Any, path: Path, errors: list[Cause]) -> None:
        if value.__class__ is not dict:
            return
        for key, item in value.items():
            child = declared(key, additional)
            if child is not None:
                if item.__class__ is not child.plain:
                    child.check(item, (path, key), errors)
            elif closed:
                field = render(path)
                errors.append(invalid(field, key, f"{field}.{key} in body is a forbidden property"))

    return check


def _required(names: tuple[str, ...]) -> Check:
    def check(value: Any, path: Path, errors: list[Cause]) -> None:
        if value.__class__ is dict:
            errors.extend(required(render((path, name))) for name in names if name not in value)

    return check


def _embedded(value: Any, path: Path, errors: list[Cause]) -> None:
    """An embedded resource names its kind; its metadata is an object."""
    if value.__class__ is not dict:
        return
    for name in ("apiVersion", "kind"):
        found, field = value.get(name), render((path, name))
        if name not in value:
            errors.append(required(field))
        elif not isinstance(found, str):
            errors.append(invalid(field, found, "must be a string"))
        elif not found:
            errors.append(invalid(field, found, "must not be empty"))
    if not isinstance(value.get("metadata", {}), dict):
        errors.append(invalid(render((path, "metadata")), value["metadata"], "must be an object"))
